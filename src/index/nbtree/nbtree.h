// NbTree, the engine (NBTree, docs/papers.md): a lock-free B+-tree whose leaves lie in PM and are
// searched by metadata in DRAM.
//
//   entry.h           the states of an entry: the heart of the protocol
//   entry_protocol.h  how entries are read and change; which of several inserts wins
//   leaf.h            the DRAM side of a leaf
//   leaf_memory.h     where these lie
//   top.h             the layers above
//   locator.h         the way to a leaf
//   ledger.h          blocks on their way in and out
//   operations.h      point operations: get, put, insert, update, erase; nbtree.cc instantiates
//                     them for the engine, variants.h for other forms
//   smo.h             structure modifications in three phases
//   joins.h           when sparse leaves are joined
//   reserve.h         blocks that are put aside for them, for a full pool
//   get_many.h        many lookups in one call
//   scan.cc           ordered iteration; leaf_scanner.h: the pairs of a leaf in order
//   recovery.h        what happens on open: creation, the layers above the leaves
//   destroy.h         frees all of an index that is dropped
//   cold_leaves.h     a leaf's DRAM side comes back, when it is needed
//   resumer.h         those of all leaves, while the index is in use
//   upkeep.h          all these parts of one tree
//   check.h           verification of the invariants of layout.h and leaf.h
//   form.h            what is done otherwise to measure the design; conflicts.h, leaf_lock.h,
//                     metadata_copies.h and variants.h are for that
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

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <perdix/types.h>

#include "epoch/guard.h"
#include "index/common/batch.h"
#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "index/common/word_engine.h"
#include "index/nbtree/conflicts.h"
#include "index/nbtree/entry_protocol.h"
#include "index/nbtree/form.h"
#include "index/nbtree/layout.h"
#include "index/nbtree/leaf.h"
#include "index/nbtree/leaf_lock.h"
#include "index/nbtree/leaf_scanner.h"
#include "index/nbtree/metadata_copies.h"
#include "index/nbtree/upkeep.h"
#include "pm/access.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"

namespace perdix::detail::index::nbtree {

inline constexpr std::string_view kEngineName = "nbtree";

template <class K, class V>
class TestTree;

/// The tree. Values are words; index/common/typed.h has the calls with types. `Form`: form.h.
template <class K, class Form = LockFree>
class WordTree : public OrderedWordEngine<WordTree<K, Form>, K> {
 public:
  using Key = View<K>;

  /// Opens or creates the index behind the handle. Its leaves' DRAM sides come back later
  /// (resumer.h).
  explicit WordTree(pool::IndexHandle handle, const IndexOptions& options = {});
  ~WordTree() override;

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

  /// Frees what was unlinked and waits in the ledger.
  bool reclaim_space() noexcept override;

  /// Whether a scan would find the order of the pairs in the key's leaf, and need not sort. For
  /// tests.
  bool order_kept(Key key) const {
    const epoch::Guard guard;
    return upkeep_.scanner.has_order(*locate(key).leaf);
  }

  void for_each_block(const BlockVisitor& visit) const override;

  pool::PoolCore& pool() const final { return handle_.pool(); }
  const IndexInfo& info() const final { return handle_.info(); }
  const Codec<K>& keys() const { return keys_; }
  const ValueCodec& values() const { return codec_; }

  /// How many conflicts there were; 0 in a form that does not count them.
  std::uint64_t conflicts() const { return conflicts_.sum(); }

 private:
  template <class, class>
  friend class TestTree;

  using Keys = Codec<K>;
  using Layout = EntryLayout<K>;
  using ScanBatch = typename LeafScanner<K>::ScanBatch;
  using StripeLease = Ledger::StripeLease;
  using WriteLock = LeafLock<K, Form::kLocksWrites>;
  using ReadLock = LeafLock<K, Form::kLocksReads>;
  using Tries = typename Conflicts<Form::kCountsConflicts>::Tries;

  bool all_inline() const { return entries_.all_inline(); }

  /// The entry that an update or an erase has found. `expected`: the value that it may change, null
  /// if it may be any.
  struct Target {
    const LeafRef<K>& place;
    unsigned slot;
    const Word* expected;
  };

  /// The words of the key and the value of a write, and the claims of the blocks that they own.
  struct NewPair {
    std::optional<StripeLease> lease;
    bool has_key = false;
    bool has_value = false;
    Word key = 0;
    Word value = 0;
  };

  // operations.h
  [[gnu::always_inline]] LeafRef<K> locate(Key key) const { return upkeep_.locator.locate(key); }
  LeafRef<K> locate_again(Key key) const { return upkeep_.locator.locate_again(key); }
  Lookup find_in(const Leaf<K>& leaf, Key key, Hash16 hash) const;
  Lookup find_durable(LeafRef<K>& place, Key key, Hash16 hash) const;
  bool value_is(Word value, const NewValue* expected) const {
    return expected == nullptr || codec_.equal(value, *expected);
  }
  bool try_write(Key key, NewValue value, Mode mode, const NewValue* expected);
  bool replace(const Target& target, NewPair& pair);
  bool try_erase(Key key, const NewValue* expected);
  bool read_batch(ScanBatch& batch, K& position, std::size_t limit) const;
  template <class Prepare>
  bool exchange_value(const Target& target, Word value, pm::WordPair& old, const Prepare& prepare);
  bool replace_string(const Target& target, NewPair& pair, pm::WordPair& old);
  bool remove(const Target& target, unsigned& pairs);
  template <class Prepare>
  bool exchange_key(const Target& target, unsigned& pairs, pm::WordPair& old,
                    const Prepare& prepare);
  bool remove_strings(const Target& target, unsigned& pairs, pm::WordPair& old);
  void name_replaced_blob(NewPair& pair, Word value);
  void load_pair(NewPair& pair, const Key* key, Hash16 hash, NewValue value);
  void load_strings(NewPair& pair, const Key* key, Hash16 hash, NewValue value);

  InsertOutcome add(const LeafRef<K>& place, Key key, Hash16 hash, NewPair& pair);
  void free_lost_blobs(const LeafRef<K>& place, unsigned slot, NewPair& pair);

  // recovery.h
  void recover();

  // check.h
  void check_leaf(const Position<K>& at, CheckReport& report) const;
  void check_entries(const Position<K>& at, const Leaf<K>& leaf, CheckReport& report) const;

  const pm::Persister& pm() const { return pool().pm(); }
  Root& root() const { return *pool().template at<Root>(pm::load(handle_.root())); }

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  pool::IndexHandle handle_;
  const EntryProtocol<K> entries_;
  Keys keys_;
  ValueCodec codec_;
  [[no_unique_address]] mutable Conflicts<Form::kCountsConflicts> conflicts_;
  const MetadataCopies copies_;
  mutable Upkeep<K> upkeep_;  // all that calls that only read change, too
  std::uint64_t leaves_at_opening_ = 0;
  double recovery_seconds_ = 0;
  std::optional<pool::OpenIndexes::Entry> entry_;  // last: made when the index is complete
};

extern template class WordTree<std::uint64_t>;
extern template class WordTree<std::string>;

}  // namespace perdix::detail::index::nbtree
