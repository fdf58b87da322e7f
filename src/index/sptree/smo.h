// Structure modifications (Zhao et al. 2024, section 4.5): split a full leaf, merge two sparse
// neighbours.
//
// Both commit by one store of the left leaf's `link`, which changes the successor and selects the
// other bitmap together. So no crash leaves a pair in a leaf whose range excludes it (the "stale
// copies" that the paper's protocol tolerates and a later merge brings back); and no leaf leaks, by
// the allocator's recyclable log.
//
// A node is published in the top layer after the commit that links its leaf, and unlinked there,
// and from the backup (L8), before the commit that frees the leaf. Locks are taken from left to
// right. A merge that gets no memory or space is left to a later erase: the call that started it
// has completed its change.
//
// Thread-safe. The caller holds an epoch::Guard.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "index/sptree/buffers.h"
#include "index/sptree/leaf_backup.h"
#include "index/sptree/leaf_store.h"
#include "index/sptree/locked_node.h"
#include "index/sptree/middle_nodes.h"
#include "index/sptree/node_hints.h"
#include "index/sptree/top_layer.h"

namespace perdix::detail::index::sptree {

template <class K>
class Structure {
 public:
  using Node = Mnode<K>;
  using LockedNode = sptree::LockedNode<K>;
  using Key = View<K>;

  /// All outlive this.
  Structure(pool::PoolCore& pool, LeafStore<K>& leaves, MiddleNodes<K>& nodes,
            NodeBuffers<K>& buffers, NodeHints<K>& hints, TopLayer<K>& top, LeafBackup<K>& backup)
      : pool_(pool),
        leaves_(leaves),
        nodes_(nodes),
        buffers_(buffers),
        hints_(hints),
        top_(top),
        backup_(backup) {}

  /// Splits the locked node, so that `key` finds room in it or in its new right neighbour. What of
  /// its write buffer moves becomes a part of the new leaf; the rest is merged, since the left leaf
  /// has room for it then. So the chain ends before anything that it names can be changed. Throws
  /// out_of_space and bad_alloc, and has changed nothing.
  void split(Node& node, Key key);

  /// Merges after an erase from the node, if it is sparse and a neighbour is, too. Throws corrupt.
  void merge_around(LockedNode node);

  /// Merges the buffer of a chain, if a node still has that buffer. `may_split`: else a leaf that
  /// has no room for that is left alone. The caller holds no lock, and needs no guard.
  void clean(wal::Chain& chain, bool may_split);

 private:
  using Buffer = typename NodeBuffers<K>::Buffer;
  using Keys = Codec<K>;
  using NodeBounds = Bounds<K>;
  using Version = typename Node::Lock::Version;

  struct Entry;
  struct Division;
  Division undivided(const Node& node) const;
  Pair pair_of(const Node& node, const Entry& entry) const;
  void restage_left(Node& node, std::span<Entry> entries, SlotSet taken);
  void link_right(Node& node, Node* right);
  bool mergeable(const Node& node) const;
  LockedNode lock_left_of(Key key);
  bool unlink(const Node& node);
  void publish_again(Node& node) noexcept;
  void try_to_merge(Node& node);
  void merge_with_next(Node& node);

  const pm::Persister& pm() const { return pool_.pm(); }

  pool::PoolCore& pool_;
  LeafStore<K>& leaves_;
  MiddleNodes<K>& nodes_;
  NodeBuffers<K>& buffers_;
  NodeHints<K>& hints_;
  TopLayer<K>& top_;
  LeafBackup<K>& backup_;
};

}  // namespace perdix::detail::index::sptree
