#include "index/nbtree/joins.h"

#include <bit>
#include <mutex>
#include <new>

#include <perdix/error.h>

#include "epoch/guard.h"
#include "pm/probe.h"

namespace perdix::detail::index::nbtree {

/// Whether two neighbours should become one.
template <class K>
bool Joins<K>::may_join(const Leaf<K>& left, const Leaf<K>& right) const {
  const int a = std::popcount(left.visible_slots()), b = std::popcount(right.visible_slots());
  return a == 0 || b == 0 || static_cast<unsigned>(a + b) <= kJoinUpTo;
}

/// Whether the position is the first of a region. Their anchors, and no others, lie in the root
/// (N3), so nothing is read for it.
template <class K>
bool Joins<K>::begins_region(const Position<K>& at) const {
  return &at.anchor() >= first_ && &at.anchor() < first_ + EntryLayout<K>::kRegions;
}

/// After an erase that has left `pairs` in the leaf: joins it with a neighbour, if both are sparse.
/// The left one is found by a search, so only now and then: each of these counts is left by one
/// erase.
template <class K>
void Joins<K>::join_if_due(const LeafRef<K>& place, unsigned pairs) {
  if (pairs != 0 && pairs != kJoinUpTo / 2) return;
  if (try_join(place)) return;
  pm::on_step("nbtree: a join is left for later");
  due_.store(Due::in_next_round);
}

/// Joins a leaf with a neighbour, if both are sparse. False if that is still to be done: there was
/// no space or no memory for it, or something else happens to one of them.
template <class K>
bool Joins<K>::try_join(const LeafRef<K>& place) {
  try {
    if (!begins_region(*place.at)) {
      const auto left = structure_.left_neighbour(*place.at);
      if (left && may_join(*left->leaf, *place.leaf)) return structure_.join(*left, place);
    }
    Position<K>* next = place.leaf->next();
    if (next == nullptr || EntryLayout<K>::begins_region(place.leaf->end())) return true;
    Leaf<K>* right = cold_.leaf_of(*next);
    return right == nullptr || !may_join(*place.leaf, *right) ||
           structure_.join(place, {next, right});
  } catch (const Error&) {  // the erase is done; a call that needs the leaf reports it
  } catch (const std::bad_alloc&) {
  }
  return false;
}

/// Makes up for joins that were due and could not be done, in rounds over all leaves until there
/// was a round in which none was missed. Looks at a few leaves only: each erase calls this as long
/// as joins are due. One thread at a time does so; others go on. False if there is no more to do
/// now.
template <class K>
bool Joins<K>::make_up() {
  constexpr unsigned kLeavesAtOnce = 4;
  const std::unique_lock lock(round_lock_, std::try_to_lock);
  if (!lock) return false;
  const epoch::Guard guard;
  pm::on_step("nbtree: make up for joins");
  for (unsigned i = 0; i < kLeavesAtOnce; ++i) {
    if (round_from_ == K{}) due_.store(Due::in_this_round);
    const LeafRef<K> place = locator_.locate(round_from_);
    const int pairs = std::popcount(place.leaf->visible_slots());
    if (static_cast<unsigned>(pairs) <= kJoinUpTo / 2 && !try_join(place)) return false;
    if (!place.current()) continue;  // what it has become may join with the next one, too
    const bool last = place.leaf->next() == nullptr;
    round_from_ = last ? K{} : K(place.leaf->end());
    Due due = Due::in_this_round;
    if (last) pm::on_step("nbtree: end a round of joins");
    if (last && due_.compare_exchange_strong(due, Due::none)) return false;
  }
  return true;
}

/// Like make_up(), for an erase, which is done: what goes wrong is for others. If nothing could be
/// done the last time, then there is no space yet, most likely: so it tries now and then.
template <class K>
void Joins<K>::make_up_in_erase() {
  constexpr unsigned kErasesPerTry = 64;
  if (stuck_.load(std::memory_order_relaxed) &&
      erases_since_try_.fetch_add(1, std::memory_order_relaxed) % kErasesPerTry != 0)
    return;
  try {
    stuck_.store(!make_up(), std::memory_order_relaxed);
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
  }
}

template class Joins<std::uint64_t>;
template class Joins<std::string>;

}  // namespace perdix::detail::index::nbtree
