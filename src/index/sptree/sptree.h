// SpTree, the engine (Zhao et al. 2024, section 4): a radix tree in DRAM leads to middle nodes in
// DRAM, each of which stands for one leaf in PM.
//
//   sptree.cc       lookups, put, insert, update, erase; what an index says of itself
//   get_many.h      batches of lookups
//   scan.h          ordered iteration
//   recovery.h      what happens on open: creation
//   destroy.h       frees all of an index that is dropped
//
// What it consists of, each with its invariants:
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
// Readers take no lock: they validate the version of the middle node. Both find nodes through the
// top layer, which may lag behind: it leads to the right node or to one left of it, and `next`
// leads on. A node found this way, by a hint or by a buffer is a guess until its range was compared
// with the key under the node's version or lock. A node without `next` means that cold leaves
// follow, not that the key is in one: see Resumer::lock_before_cold_range().
//
// Durability: an operation's linearization point and its commit point are the same 8-byte publish,
// persisted before the lock is released, so no thread sees an effect that a crash could undo.
// docs/durability/sptree.md has the cases.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <perdix/types.h>

#include "epoch/guard.h"
#include "index/common/batch.h"
#include "index/common/codec.h"
#include "index/common/neighbour.h"
#include "index/common/scan_orders.h"
#include "index/common/value_codec.h"
#include "index/common/word_engine.h"
#include "index/sptree/buffers.h"
#include "index/sptree/leaf.h"
#include "index/sptree/leaf_backup.h"
#include "index/sptree/leaf_orders.h"
#include "index/sptree/leaf_store.h"
#include "index/sptree/locked_node.h"
#include "index/sptree/middle_nodes.h"
#include "index/sptree/node_hints.h"
#include "index/sptree/resumer.h"
#include "index/sptree/smo.h"
#include "index/sptree/top_layer.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"
#include "util/arena.h"
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
  explicit WordTree(pool::IndexHandle handle, const IndexOptions& options = {},
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

  /// Whether a hint leads to the key's node, at a moment without writers. For tests.
  bool hinted(Key key) const;

  /// How often a lookup of the key would go from a node to the next one. For tests.
  unsigned steps_right(Key key) const;

  /// Whether a scan would find the order of the pairs in the key's leaf, and need not sort. For
  /// tests.
  bool order_kept(Key key) const;

  void for_each_block(const BlockVisitor& visit) const override;

  const pool::IndexHandle& handle() const { return handle_; }

  pool::PoolCore& pool() const final { return handle_.pool(); }
  const IndexInfo& info() const final { return handle_.info(); }
  const Codec<K>& keys() const { return leaves_.keys(); }
  const ValueCodec& values() const { return leaves_.values(); }

 private:
  using Node = Mnode<K>;
  using LockedNode = sptree::LockedNode<K>;
  using Version = typename Node::Lock::Version;
  using Buffer = typename NodeBuffers<K>::Buffer;
  using Keys = Codec<K>;
  using NodeBounds = Bounds<K>;
  using Order = LeafOrder<K>;

  /// What the upkeep of the buffers requires.
  struct Upkeep {
    WordTree& tree;

    void clean(wal::Chain& chain, bool may_split) { tree.structure_.clean(chain, may_split); }
    void resume_some(unsigned leaves) { tree.resumer_.resume_some(leaves); }
    void log_was_shortened() { tree.hints_.grow(); }
    std::int64_t pairs() const { return tree.leaves_.pairs(); }
  };

  // sptree.cc
  template <class Read>
  auto read_node(Key key, Hash16 hash, Read read) const;
  template <class Read>
  auto read_node_from(Node* node, Key key, Read read) const;
  template <class Read>
  auto keep_reading(Node* node, Key key, Read read) const;
  Node* go_right(Node* node, Version version, Key key, unsigned& steps) const;
  LockedNode lock_node(Key key, Hash16 hash, bool may_add);
  void prefetch_for_write(const Node& node, Hash16 hash, bool may_add) const;
  void prefetch_by_hint(Key key, Hash16 hash) const;
  void prefetch_node(const Node* node, Hash16 hash) const;
  bool value_is(const Found& found, const NewValue* expected) const {
    return expected == nullptr || leaves_.values().equal(found.value, *expected);
  }
  bool try_write(Key key, NewValue value, Mode mode, const NewValue* expected);
  bool add(Node& node, Key key, NewValue value, Hash16 hash);
  void replace(Node& node, const Found& found, NewValue value);
  void remove(Node& node, const Found& found);
  void shed_stale_filter(Node& node);
  void back_up(Key low, pm::Offset leaf) noexcept;
  template <class Visit>
  void with_checker(Visit visit) const;

  // get_many.h
  struct Pending;
  void find_nodes(std::span<const Key> keys, std::span<Pending> group) const;
  const Buffer* prefetch_pair(const Node& node, Hash16 hash) const;
  void prefetch_blobs(const Pending& pending) const;

  // scan.h
  struct ScanBatch;
  bool read_batch(ScanBatch& batch, K& position, std::size_t limit) const;
  void prefetch_after(const Node& node, std::size_t read) const;

  // recovery.h
  void create();
  void open_log(pm::Offset log, std::uint64_t budget);

  Root& root() const { return *pool().template at<Root>(pm::load(handle_.root())); }
  const pm::Persister& pm() const { return pool().pm(); }
  wal::Log& log() const { return *buffers_.log(); }
  bool has_log() const { return buffers_.log() != nullptr; }

  pool::IndexHandle handle_;
  LeafStore<K> leaves_;
  util::Arena arena_;  // bounds, orders, write buffers, and the top layer
  ScanOrders orders_;  // by the numbers of nodes; a cache that scans fill
  MiddleNodes<K> nodes_;
  NodeBuffers<K> buffers_;
  LeafOrders<K> leaf_orders_;
  NodeHints<K> hints_;  // of integer keys, for writes with buffers
  // Before the arena is destroyed, all retired memory must have returned to it.
  epoch::DrainFirst drain_;
  mutable TopLayer<K> top_;  // a reader, too, adds to the DRAM layers: they are a cache
  double recovery_seconds_ = 0;
  // Their work ends before any other member is destroyed.
  mutable LeafBackup<K> backup_;
  Structure<K> structure_;
  mutable Resumer<K> resumer_;
  std::optional<pool::OpenIndexes::Entry> entry_;  // last: made when the index is complete
};

extern template class WordTree<std::uint64_t>;
extern template class WordTree<std::string>;

/// Where to look on for a key behind the node's range: it was split since the top layer was asked,
/// as in a B-link tree, or the key's leaf is cold. The node itself if it has changed in between.
/// `steps` counts those to the right, from 0 on. After a few the guess was a bad one, and the
/// search is made again, validated; nodes between its result and the key's node are missing in the
/// top layer.
template <class K>
[[gnu::noinline]] auto WordTree<K>::go_right(Node* node, Version version, Key key,
                                             unsigned& steps) const -> Node* {
  constexpr unsigned kSplitsMeanwhile = 4;
  Node* next = nodes_.next_of(*node);
  if (!node->lock.read_validate(version)) return node;
  if (next == nullptr) {
    pm::on_step("sptree: a leaf may be cold");
    resumer_.warm(key);
    return top_.locate_surely(key);  // the guess that led here may be the same again
  }
  pm::on_step("sptree: go right");
  if (++steps == kSplitsMeanwhile) return top_.locate_surely(key);
  if (steps > kSplitsMeanwhile) top_.publish_if_missing(*next);
  return next;
}

/// What read_node_from() does if its first attempt failed: attempts until one is consistent.
template <class K>
template <class Read>
[[gnu::noinline]] auto WordTree<K>::keep_reading(Node* node, Key key, Read read) const {
  for (unsigned steps = 0;;) {
    const Version version = node->lock.read_begin();
    if (Node::Lock::obsolete(version)) {
      pm::on_step("sptree: a reader meets a node that is gone");
      node = top_.locate(key);
      continue;
    }
    if (!node->covers(key)) {
      node = go_right(node, version, key, steps);
      continue;
    }
    auto result = read(*node);
    if (node->lock.read_validate(version)) return result;
    pm::on_step("sptree: a reader meets a change");
  }
}

/// Calls read(node) on the node whose range covers the key until the result is consistent. The
/// caller holds a guard.
template <class K>
template <class Read>
auto WordTree<K>::read_node(Key key, Hash16 hash, Read read) const {
  Node* node = top_.locate(key);
  node->prefetch_fingerprints(hash);  // at the same time as the first line
  return read_node_from(node, key, read);
}

/// The same, beginning at a node that doesn't begin after the key. The first attempt is not in the
/// loop: a compiler would calculate before it whatever is the same in each pass, and keep it.
template <class K>
template <class Read>
auto WordTree<K>::read_node_from(Node* node, Key key, Read read) const {
  const Version version = node->lock.read_begin();
  if (!Node::Lock::obsolete(version) && node->covers(key)) [[likely]] {
    auto result = read(*node);
    if (node->lock.read_validate(version)) [[likely]]
      return result;
  }
  return keep_reading(node, key, read);
}

}  // namespace perdix::detail::index::sptree
