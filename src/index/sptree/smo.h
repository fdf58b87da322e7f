// Structure modifications (Zhao et al. 2024, section 4.5): split a full leaf, merge two sparse
// neighbours.
//
// Both commit by one store of the left leaf's `link`, which changes the successor and selects the
// other bitmap together. So no crash leaves a pair in a leaf whose range excludes it (the "stale
// copies" that the paper's protocol tolerates and a later merge brings back); and no leaf leaks, by
// the allocator's recyclable log.
//
// A node is published in the top layer after the commit that links its leaf. It is removed from the
// top layer and from the backup (L8) before the commit that frees the leaf. Locks are taken from
// left to right. A merge that gets no memory or space is left to a later erase: the call that
// started it has completed its change.
//
// Thread-safe. The caller holds an epoch::Guard.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "index/sptree/locked_node.h"
#include "index/sptree/parts.h"

namespace perdix::detail::index::sptree {

template <class K>
class Structure {
 public:
  using Node = Mnode<K>;
  using LockedNode = sptree::LockedNode<K>;
  using Key = View<K>;

  /// The parts outlive this.
  explicit Structure(Parts<K>& parts) : parts_(parts) {}

  /// Splits the locked node, so that `key` finds room in it or in its new right neighbour. Pairs of
  /// its write buffer that move are written to the new leaf. The others are merged into the left
  /// leaf, which has room for them then. So the chain ends before anything that it names can be
  /// changed. Throws out_of_space and bad_alloc, and has changed nothing.
  void split(Node& node, Key key);

  /// Called after an erase from the node: merges it with a neighbour if both are sparse. Throws
  /// corrupt.
  void merge_around(LockedNode node);

  /// Merges the buffer of a chain, if a node still has that buffer. If the leaf has no room, splits
  /// it, or, without `may_split`, changes nothing. The caller holds no lock, and needs no guard.
  void clean(wal::Chain& chain, bool may_split);

 private:
  using Buffer = typename NodeBuffers<K>::Buffer;
  using Keys = Codec<K>;
  using NodeBounds = Bounds<K>;
  using Version = typename Node::Lock::Version;

  struct Entry;
  struct Division;
  Division all_pairs(const Node& node) const;
  Pair pair_of(const Node& node, const Entry& entry) const;
  SlotSet write_right(const Node& node, std::span<Entry> moving, Word low, Node& right);
  void restage_left(Node& node, std::span<Entry> entries, SlotSet taken);
  void link_right(Node& node, Node* right);
  bool mergeable(const Node& node) const;
  LockedNode lock_left_of(Key key);
  bool unlink(const Node& node);
  void undo_unlink(Node& node) noexcept;
  void try_to_merge(Node& node);
  void merge_with_next(Node& node);
  void copy_pairs(const Node& from, Node& to);

  const pm::Persister& pm() const { return parts_.pool.pm(); }

  Parts<K>& parts_;
};

}  // namespace perdix::detail::index::sptree
