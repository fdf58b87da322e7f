// Which leaves are joined, and when: after an erase, if both are sparse. A join that was due and
// could not be done, for want of space or memory or since another change was on its way, is made up
// for later, in rounds over all leaves.
//
// Invariants:
//   1. A join that was missed leaves due() true until a round over all leaves has begun after it
//   and missed none.
//   2. One thread at a time goes on with a round; others do not wait for it.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "index/nbtree/cold_leaves.h"
#include "index/nbtree/leaf.h"
#include "index/nbtree/locator.h"
#include "index/nbtree/smo.h"
#include "util/spin_lock.h"

namespace perdix::detail::index::nbtree {

template <class K>
class Joins {
 public:
  using Key = View<K>;

  /// `first`: the anchors of the regions of keys, in the root.
  Joins(const Anchor* first, Structure<K>& structure, Locator<K>& locator, ColdLeaves<K>& cold)
      : first_(first), structure_(structure), locator_(locator), cold_(cold) {}

  /// The caller holds a guard.
  void join_if_due(const LeafRef<K>& place, unsigned pairs);

  /// Whether some are to be made up for.
  bool due() const { return due_.load() != Due::none; }

  bool make_up();
  void make_up_in_erase();

 private:
  /// Joins of sparse leaves that are still to be done.
  enum class Due : std::uint8_t { none, in_this_round, in_next_round };

  bool try_join(const LeafRef<K>& place);
  bool may_join(const Leaf<K>& left, const Leaf<K>& right) const;
  bool begins_region(const Position<K>& at) const;

  const Anchor* const first_;
  Structure<K>& structure_;
  Locator<K>& locator_;
  ColdLeaves<K>& cold_;
  std::atomic<Due> due_{Due::none};
  std::atomic<bool> stuck_{false};
  std::atomic<unsigned> erases_since_try_{0};
  util::SpinLock round_lock_;  // only tried
  K round_from_{};             // where the round over all leaves is
};

}  // namespace perdix::detail::index::nbtree
