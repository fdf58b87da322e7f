// SpTree, the engine (Zhao et al. 2024, section 4): a radix tree in DRAM leads to middle nodes in
// DRAM, each of which stands for one leaf in PM.
//
//   sptree.cc       opening, lookups, put, insert, update, erase; what an index says of itself
//   search.h        the way to the node of a key, for readers and writers
//   get_many.h      batches of lookups
//   scan.h          ordered iteration
//   recovery.h      creation
//   owned.h         which blocks a tree owns; a drop frees them
//
// What it consists of (parts.h), each with its invariants:
//
//   leaf_store.h    pairs in PM, in the leaves of layout.h
//   middle_nodes.h  the nodes of mnode.h: their memory and their list
//   buffers.h       write buffers, which take changes in place of the leaves, and their merging
//   top_layer.h     the radix tree
//   node_hints.h    where the node of a key probably is, for writes with buffers
//   leaf_orders.h   in which order scans show the pairs of a leaf
//   leaf_backup.h   where the leaves are, in PM: the resumer finds its leaf by it
//   smo.h           split and merge, the structure modifications
//   resumer.h       the DRAM layers after an opening, leaf by leaf, while the index is in use
//   check.h         verification of the invariants of all parts
//
// Concurrency (§4.2): a writer holds the lock of the middle node that it changes; for a merge those
// of two neighbours, taken from left to right. Under a lock it may take a session of the allocator,
// and after that a stripe of the log, never the reverse; another node's lock only if it is free.
// Readers take no lock: they validate the version of the middle node.
//
// Durability: an operation's linearization point and its commit point are the same 8-byte publish,
// persisted before the lock is released, so no thread sees an effect that a crash could undo.
// docs/durability/sptree.md has the cases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <perdix/sptree.h>
#include <perdix/types.h>

#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "index/common/word_engine.h"
#include "index/sptree/leaf_at.h"
#include "index/sptree/parts.h"
#include "index/sptree/resumer.h"
#include "index/sptree/search.h"
#include "index/sptree/smo.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"
#include "wal/log.h"

namespace perdix::detail::index::sptree {

inline constexpr std::string_view kEngineName = "sptree";

using pool::BlockVisitor;

/// The tree. Values are words; index/common/typed.h has the calls with types.
template <class K>
class WordTree : public OrderedWordEngine<WordTree<K>, K> {
 public:
  using Key = View<K>;

  /// Opens or creates the index behind the handle. Its DRAM layers come back later (resumer.h).
  /// `log_limits`: for tests; `bytes` follows from the budget.
  explicit WordTree(pool::IndexHandle handle, const SpTreeOptions& options = {},
                    const wal::Log::Limits& log_limits = {0});

  /// Frees all blocks of an index that is being dropped and clears its root. Restartable: after a
  /// crash it goes on where it was.
  static void destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind);

  bool write(Key key, NewValue value, Mode mode, const NewValue* expected) final;
  bool erase(Key key, const NewValue* expected) final;
  bool contains(Key key) const final;
  using OrderedWordEngine<WordTree, K>::find;
  bool find(Key key, std::uint64_t& value) const final;

  // The caller holds a guard, as long as it uses what words refer to.
  std::optional<Word> find_word(Key key) const;
  void find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const;
  void find_last(Key key, bool strictly, LastPairs& last) const;

  void scan(Key from, std::size_t limit, const PairSink<K>& show) const final;

  std::uint64_t size() const final;
  IndexStats stats() const override;
  CheckReport check() const override;

  /// Merges the buffers and gives back the space that the log no longer needs. Needs no space.
  bool reclaim_space() noexcept override;

  void for_each_block(const BlockVisitor& visit) const override;

  const pool::IndexHandle& handle() const { return handle_; }

  pool::PoolCore& pool() const final { return handle_.pool(); }
  const IndexInfo& info() const final { return handle_.info(); }
  const Codec<K>& keys() const { return parts_.leaves.keys(); }
  const ValueCodec& values() const { return parts_.leaves.values(); }

 protected:
  const Parts<K>& parts() const { return parts_; }
  Search<K> search() const { return {parts_, resumer_}; }

 private:
  using Node = Mnode<K>;
  using Keys = Codec<K>;

  /// What the upkeep of the buffers requires.
  struct Upkeep {
    WordTree& tree;

    void clean(wal::Chain& chain, bool may_split) { tree.structure_.clean(chain, may_split); }
    void resume_some(unsigned leaves) { tree.resumer_.resume_some(leaves); }
    void log_was_shortened() { tree.parts_.hints.grow(); }
    std::int64_t pairs() const { return tree.parts_.leaves.pairs(); }
  };

  void open_log(pm::Offset log, std::uint64_t budget);
  bool value_is(const Found& found, const NewValue* expected) const {
    return expected == nullptr || values().equal(found.value, *expected);
  }
  bool try_write(Key key, NewValue value, Mode mode, const NewValue* expected);
  bool add(Node& node, Key key, NewValue value, Hash16 hash);
  void replace(Node& node, const Found& found, NewValue value);
  void remove(Node& node, const Found& found);
  void remove_buffered(Node& node, unsigned i);
  /// Leaves a locked node as it is. Returns false.
  bool leave(const Node& node) const {
    parts_.leaf_orders.unchanged(node);
    return false;
  }
  void shed_stale_filter(Node& node);
  void back_up(Key low, pm::Offset leaf) noexcept;
  template <class Visit>
  void with_checker(Visit visit) const;

  Root& root() const { return root_at(pool(), pm::load(handle_.root())); }

  pool::IndexHandle handle_;
  Parts<K> parts_;
  double recovery_seconds_ = 0;
  Structure<K> structure_;
  mutable Resumer<K> resumer_;  // its thread ends before any part is destroyed; a reader needs it
  std::optional<pool::OpenIndexes::Entry> entry_;  // last: made when the index is complete
};

extern template class WordTree<std::uint64_t>;
extern template class WordTree<std::string>;

}  // namespace perdix::detail::index::sptree
