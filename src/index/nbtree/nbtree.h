// NbTree, the engine (NBTree, docs/papers.md): a lock-free B+-tree whose leaves lie in PM and are
// searched by metadata in DRAM.
//
//   layout.h          what lies in PM
//   entry.h           the states of an entry: the heart of the protocol
//   entry_protocol.h  how entries are read and change; which of several inserts wins
//   leaf.h            the DRAM side of a leaf
//   leaf_memory.h     where these lie
//   top.h             the layers above; top_writer.h changes them
//   signposts.h       where that begins after an opening
//   locator.h         the way to a leaf
//   ledger.h          blocks on their way in and out
//   pair_writer.h     changes of a pair in its leaf
//   smo.h             structure modifications in three phases
//   joins.h           when sparse leaves are joined
//   reserve.h         blocks that are put aside for them, for a full pool
//   leaf_scanner.h    the pairs of a leaf in order, for ordered iteration
//   recovery.h        what happens on open: creation, the first leaves
//   cold_leaves.h     a leaf's DRAM side comes back, when it is needed
//   resumer.h         those of all leaves, while the index is in use
//   upkeep.h          all these parts of one tree
//   check.h           verification of the invariants of layout.h and leaf.h
//   owned.h           who owns which blocks
//   destroy.h         frees all of an index that is dropped
//
// Concurrency: no operation locks the tree. A writer that finds its leaf closed by a structure
// modification completes that and goes on at the new leaf; a reader reads a closed leaf as it is.
// Whatever was found in a leaf counts if the leaf was still at its position afterwards. What
// operations need of others and may wait for: a lane of the allocator and a stripe of the ledger,
// of which there are 64 and twice 32, and only for structure modifications and strings.
//
// Durability: a change is durable before another thread can see it, or a thread that sees it
// makes it durable (EntryProtocol::persist_unpersisted). docs/durability/nbtree.md has the cases.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <perdix/papers/nbtree.h>
#include <perdix/types.h>

#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "index/common/word_engine.h"
#include "index/nbtree/entry_protocol.h"
#include "index/nbtree/leaf.h"
#include "index/nbtree/leaf_scanner.h"
#include "index/nbtree/locator.h"
#include "index/nbtree/upkeep.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"

namespace perdix::detail::index::nbtree {

inline constexpr std::string_view kEngineName = "nbtree";

template <class K, class V>
class TestTree;

/// The tree. Values are words; index/common/typed.h has the calls with types.
template <class K>
class WordTree : public OrderedWordEngine<WordTree<K>, K> {
 public:
  using Key = View<K>;

  /// Opens or creates the index behind the handle. Its leaves' DRAM sides come back later
  /// (resumer.h).
  explicit WordTree(pool::IndexHandle handle, const NbTreeOptions& options = {});

  /// Frees all blocks of an index that is being dropped and clears its root. Restartable: after a
  /// crash it goes on where it was.
  static void destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind);

  bool write(Key key, NewValue value, Mode mode, const NewValue* expected) final;
  bool erase(Key key, const NewValue* expected) final;

  // The caller holds a guard as long as it uses the strings that words refer to.
  std::optional<Word> find_word(Key key) const;
  void find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const;
  void find_last(Key key, bool strictly, LastPairs& last) const;

  void scan(Key from, std::size_t limit, const PairSink<K>& show) const final;

  std::uint64_t size() const final;
  IndexStats stats() const override;
  CheckReport check() const override;
  void for_each_block(const pool::BlockVisitor& visit) const override;

  /// Frees what was unlinked and waits in the ledger.
  bool reclaim_space() noexcept override;

  pool::PoolCore& pool() const final { return handle_.pool(); }
  const IndexInfo& info() const final { return handle_.info(); }
  const Codec<K>& keys() const { return entries_.keys(); }
  const ValueCodec& values() const { return entries_.values(); }

 private:
  template <class, class>
  friend class TestTree;

  using Keys = Codec<K>;
  using ScanBatch = typename LeafScanner<K>::ScanBatch;

  [[gnu::always_inline]] LeafRef<K> locate(Key key) const { return locator_.locate(key); }
  LeafRef<K> locate_again(Key key) const { return locator_.locate_again(key); }
  Lookup find_durable(LeafRef<K>& place, Key key, Hash16 hash) const;
  bool value_is(Word value, const NewValue* expected) const {
    return expected == nullptr || values().equal(value, *expected);
  }
  bool try_write(Key key, NewValue value, Mode mode, const NewValue* expected);
  bool try_erase(Key key, const NewValue* expected);
  bool read_leaves(ScanBatch& batch, K& position, unsigned wanted) const;
  bool read_batch(ScanBatch& batch, K& position, std::size_t limit) const;

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  pool::IndexHandle handle_;
  const EntryProtocol<K> entries_;
  const std::unique_ptr<Upkeep<K>> upkeep_;
  const Locator<K> locator_ = upkeep_->locator;  // nearer for lookups
  double recovery_seconds_ = 0;
  std::optional<pool::OpenIndexes::Entry> entry_;  // last: made when the index is complete
};

extern template class WordTree<std::uint64_t>;
extern template class WordTree<std::string>;

}  // namespace perdix::detail::index::nbtree
