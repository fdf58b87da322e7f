// The lock of a leaf: an operation holds it from its search in the leaf to its end. The protocol of
// entry.h is the same below it, so the lock is not what makes the tree correct: a join, which an
// erase in a neighbour begins, changes a leaf without its lock, and so does an operation that comes
// to a leaf's successor in the meantime.
//
// One lock at a time is held by a thread, and a structure modification takes none: so no two
// threads wait for each other. The lock goes with the leaf, whose memory the caller's guard keeps.
#pragma once

#include "index/nbtree/leaf.h"
#include "util/spin_lock.h"
#include "util/striped_counter.h"

namespace perdix::detail::index::nbtree {

template <class K>
class LeafLock {
 public:
  LeafLock(const LeafRef<K>& place, util::StripedCounter& conflicts) : leaf_(*place.leaf) {
    if (!leaf_.try_lock()) {
      conflicts.add(1);
      util::Backoff backoff;
      do {
        backoff.pause();
      } while (!leaf_.try_lock());
    }
    late_ = !place.current();
    if (late_) conflicts.add(1);
  }
  ~LeafLock() { leaf_.unlock(); }
  LeafLock(const LeafLock&) = delete;
  LeafLock& operator=(const LeafLock&) = delete;

  /// The leaf was replaced before it was locked: the operation has to search again.
  bool late() const noexcept { return late_; }

 private:
  Leaf<K>& leaf_;
  bool late_ = false;
};

}  // namespace perdix::detail::index::nbtree
