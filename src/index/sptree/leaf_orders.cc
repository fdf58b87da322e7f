#include "index/sptree/leaf_orders.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "index/common/bucket_sort.h"

namespace perdix::detail::index::sptree {

static_assert(kLeafPairs + kBufferPairs <= Places::kMaxPlaces);

/// A place and its key.
template <class K>
struct LeafOrders<K>::Sortable {
  Key key;
  PlaceInLeaf place;

  friend bool operator<(const Sortable& a, const Sortable& b) { return a.key < b.key; }
};

template <class K>
void LeafOrders<K>::read(const Node& node, Order& order) const {
  order.node = &node;
  order.version = node.lock.read_begin();
  order.kept = orders_.read(nodes_.number_of(node), order.version, order.places);
  order.to_keep = !order.kept && sort_places(node, order.places);
  if (order.kept && order.places.fresh() > 0) [[unlikely]] {
    settle(node, order.places);
    order.to_keep = true;
  }
}

template <class K>
void LeafOrders<K>::filled(const Node& node, unsigned place, unsigned last) const {
  const auto fill = [&](Places& places) {
    if (!places.remove(static_cast<PlaceInLeaf>(place))) return false;
    places.rename(static_cast<PlaceInLeaf>(last), static_cast<PlaceInLeaf>(place));
    return true;
  };
  orders_.follow(nodes_.number_of(node), node.lock.before_lock(), node.lock.after_unlock(), fill);
}

/// Asks for what a scan needs of the next node. Its leaf has no order of lines: few pairs are in a
/// part of them, which the scan finds by the order.
template <class K>
void LeafOrders<K>::prefetch_next(const Node& next, std::size_t needed) const {
  constexpr std::size_t kMostLines = kLeafPairs / 2;
  prefetch(next);
  if (needed >= kMostLines) prefetch_pairs(*next.leaf());
}

/// Brings the places of new pairs to where they belong.
template <class K>
[[gnu::noinline]] void LeafOrders<K>::settle(const Node& node, Places& places) const {
  const Pairs pairs(*node.leaf(), buffers_.of(node));
  places.settle([&](PlaceInLeaf a, PlaceInLeaf b) {
    return leaves_.keys().view(pairs.key(a)) < leaves_.keys().view(pairs.key(b));
  });
}

/// How many keys are below `from`.
template <class K>
unsigned LeafOrders<K>::first_from(const Pairs& pairs, const Places& places, Key from) const {
  const auto below = [&](unsigned i) { return leaves_.keys().view(pairs.key(places[i])) < from; };
  unsigned size = places.size();
  if (size == 0 || !below(0)) return 0;  // as a rule, but in the first leaf of a scan
  unsigned first = 0;
  while (size > 1) {  // key `first` is below, key `first + size` is not
    const unsigned half = size / 2;
    if constexpr (!Keys::kInline) {
      leaves_.keys().prefetch(pairs.key(places[first + half / 2]));  // one of them will be the next
      leaves_.keys().prefetch(pairs.key(places[first + half + (size - half) / 2]));
    }
    first += below(first + half) ? half : 0;
    size -= half;
  }
  return first + 1;
}

/// Puts the places of all pairs in the order of their keys. What `places` has before may be
/// anything: if it is an order from before a few changes, that costs one pass, and a search for
/// each new pair. False if a key is there twice or out of the node's range.
template <class K>
bool LeafOrders<K>::sort_places(const Node& node, Places& places) const {
  Places listed;
  const unsigned former = list_places(node, places, listed);
  const Pairs pairs(*node.leaf(), buffers_.of(node));
  if constexpr (!Keys::kInline) {
    for (const PlaceInLeaf place : listed.span()) leaves_.keys().prefetch(pairs.key(place));
  }
  std::array<Sortable, Places::kMaxPlaces> sorted;
  for (unsigned i = 0; i < listed.size(); ++i)
    sorted[i] = {leaves_.keys().view(pairs.key(listed[i])), listed[i]};
  const auto begin = sorted.begin(), end = begin + listed.size();
  // Two runs: the slots that were in order and still are, and the rest. A slot that was filled
  // again in between may have its key anywhere.
  const auto middle = std::is_sorted(begin, begin + former) ? begin + former : begin;
  if constexpr (Keys::kInline) {
    bucket_sort<Places::kMaxPlaces>(std::span(middle, end));
  } else {
    std::sort(middle, end);
  }
  places.clear();
  if (begin == end) return true;
  const Sortable* last = nullptr;
  bool sound = true;
  for (auto old = begin, fresh = middle; old != middle || fresh != end;) {
    const bool take_fresh = old == middle || (fresh != end && *fresh < *old);
    const Sortable* next = take_fresh ? fresh++ : old++;
    sound &= last == nullptr ? !(next->key < NodeBounds::view(node.low)) : *last < *next;
    places.push(next->place);
    last = next;
  }
  return sound && node.covers(last->key);
}

/// Lists the places of all pairs, and first those that `former` has in order. Returns how many
/// these are.
template <class K>
unsigned LeafOrders<K>::list_places(const Node& node, const Places& former, Places& into) const {
  const SlotSet slots = node.slots();
  std::array<std::uint64_t, 2> left = {slots.word(0), slots.word(1)};
  const Buffer* buffer = buffers_.of(node);
  unsigned buffered = buffer == nullptr ? 0 : (1u << std::min(buffer->size(), kBufferPairs)) - 1;
  for (const PlaceInLeaf place : former.settled()) {
    if (place < kLeafPairs) {
      const std::uint64_t bit = std::uint64_t{1} << place % 64;
      const std::uint64_t low = place < 64 ? bit : 0, high = bit - low;
      if (((left[0] & low) | (left[1] & high)) == 0) continue;
      left = {left[0] & ~low, left[1] & ~high};
    } else {
      const unsigned bit = 1u << (place - kLeafPairs) % 32;
      if ((buffered & bit) == 0) continue;
      buffered -= bit;
    }
    into.push(place);
  }
  const unsigned count = into.size();
  for (const unsigned slot : SlotSet(left)) into.push(static_cast<PlaceInLeaf>(slot));
  for (; buffered != 0; buffered &= buffered - 1)
    into.push(static_cast<PlaceInLeaf>(kLeafPairs + std::countr_zero(buffered)));
  return count;
}

template <class K>
void LeafOrders<K>::collect_last(const Node& node, Key key, bool strictly, Order& order,
                                 LastPairs& last) const {
  last.clear();
  prefetch_pairs(*node.leaf());
  read(node, order);
  const Pairs pairs(*node.leaf(), buffers_.of(node));
  const Places& places = order.places;
  unsigned end = first_from(pairs, places, key);
  if (!strictly && end < places.size() && !(key < leaves_.keys().view(pairs.key(places[end]))))
    ++end;  // the key itself
  for (; end > 0 && !last.full(); --end)
    last.add(pairs.key(places[end - 1]), pairs.value(places[end - 1]));
}

template <class K>
bool LeafOrders<K>::sound_if_kept(const Node& node) const {
  Order order;
  read(node, order);
  if (!order.kept) return true;
  Places anew;
  sort_places(node, anew);
  return std::ranges::equal(order.places.span(), anew.span());
}

template class LeafOrders<std::uint64_t>;
template class LeafOrders<std::string>;

}  // namespace perdix::detail::index::sptree
