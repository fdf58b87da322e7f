#include "index/nbtree/leaf_scanner.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "index/common/bucket_sort.h"

namespace perdix::detail::index::nbtree {

static_assert(kCapacity <= Places::kMaxPlaces);

namespace {

template <class Item>
void sort_items(std::span<Item> items) {
  if constexpr (std::is_integral_v<decltype(Item::key)>) {
    bucket_sort<kCapacity>(items);
  } else {
    std::sort(items.begin(), items.end());
  }
}

}  // namespace

/// Adds at most `limit` pairs of a leaf with key >= from, ascending, and asks for what the next
/// leaf needs if these are fewer. False if the leaf was replaced while they were read.
template <class K>
bool LeafScanner<K>::collect(const LeafRef<K>& place, Key from, std::size_t limit, Order& order,
                             ScanBatch& into) const {
  const Leaf<K>& leaf = *place.leaf;
  prefetch_entries(leaf);
  const Position<K>* const position = leaf.next();
  const Leaf<K>* const next =
      position == nullptr ? nullptr : position->leaf.load(std::memory_order_acquire);
  const bool is_warm = next != nullptr && !is_cold(next);
  if (is_warm) next->prefetch();
  const unsigned first = sort_and_find(place, from, order);
  const std::span rest = order.places.span().subspan(first);
  if (is_warm && rest.size() < limit) prefetch_next(*next);
  for (const PlaceInLeaf slot : rest) {
    const Entry& entry = leaf.block().entries[slot];
    const Word word = pm::load(entry.key);
    if (Layout::state(word) == State::special) continue;
    into.add(keys_.view(Layout::key(word, from)), pm::load(entry.value));
    if (--limit == 0) break;
  }
  entries_.persist_unpersisted(leaf, order.visible);
  return place.current();
}

/// The order of the leaf's pairs, and how many of its keys are below `from`.
template <class K>
unsigned LeafScanner<K>::sort_and_find(const LeafRef<K>& place, Key from, Order& order) const {
  const Leaf<K>& leaf = *place.leaf;
  order.visible = leaf.visible_slots();
  order.kept = memory_.orders().read(memory_.number_of(leaf), order.visible, order.places);
  order.to_keep = false;
  const auto make = [&] { order.to_keep = sort_slots(leaf, place.at->low(), order); };
  if (!order.kept) {
    make();
  } else if (order.places.fresh() > 0) {
    order.to_keep = settle(leaf, place.at->low(), order.places);
    if (!order.to_keep) make();
  }
  std::optional<unsigned> first = first_from(leaf, order.places, from);
  for (; !first; first = first_from(leaf, order.places, from)) make();
  return *first;
}

/// Brings the slots of new entries to where they belong. False, and they may be anywhere, if that
/// can't be found out since an entry is dead by now.
template <class K>
[[gnu::noinline]] bool LeafScanner<K>::settle(const Leaf<K>& leaf, Key low, Places& places) const {
  bool alive = true;
  places.settle([&](PlaceInLeaf a, PlaceInLeaf b) {
    const Word first = pm::load(leaf.block().entries[a].key);
    const Word second = pm::load(leaf.block().entries[b].key);
    alive &= Layout::state(first) != State::special && Layout::state(second) != State::special;
    return alive && keys_.view(Layout::key(first, low)) < keys_.view(Layout::key(second, low));
  });
  return alive;
}

/// How many keys are below `from`, which is in the leaf's range. Nothing if that can't be found out
/// since one of them is dead by now.
template <class K>
std::optional<unsigned> LeafScanner<K>::first_from(const Leaf<K>& leaf, const Places& places,
                                                   Key from) const {
  unsigned first = 0;
  for (unsigned size = places.size(); size > 0;) {
    const unsigned half = size / 2;
    const Word word = pm::load(leaf.block().entries[places[first + half]].key);
    if (Layout::state(word) == State::special) return std::nullopt;
    const bool below = keys_.view(Layout::key(word, from)) < from;
    first += below ? half + 1 : 0;
    size = below ? size - half - 1 : half;
  }
  return first;
}

/// Puts the slots that are visible and not dead in the order of their keys. What the order has
/// before may be anything: if it is one of a few changes ago, that costs one pass, and a search for
/// each new pair. `low` is the leaf's low bound. False if a key is there twice or out of the leaf's
/// range.
template <class K>
bool LeafScanner<K>::sort_slots(const Leaf<K>& leaf, Key low, Order& order) const {
  struct Sortable {
    Key key;
    PlaceInLeaf slot;
    bool operator<(const Sortable& other) const { return key < other.key; }
  };
  std::array<Sortable, kCapacity> sorted;
  unsigned size = 0;
  const auto add = [&](unsigned slot) {
    const Word word = pm::load(leaf.block().entries[slot].key);
    if (Layout::state(word) == State::special) return;
    sorted[size++] = {keys_.view(Layout::key(word, low)), static_cast<PlaceInLeaf>(slot)};
  };
  std::uint64_t left = order.visible;
  for (const PlaceInLeaf slot : order.places.settled()) {
    const std::uint64_t bit = slot < kCapacity ? left & std::uint64_t{1} << slot : 0;
    if (bit != 0) add(slot);
    left -= bit;
  }
  const auto begin = sorted.begin(), former_end = begin + size;
  for (; left != 0; left &= left - 1) add(static_cast<unsigned>(std::countr_zero(left)));
  // Two runs: what was in order, and the rest. In a block that a structure modification has written
  // the slots themselves are in order.
  const auto end = begin + size;
  const auto middle = std::is_sorted(begin, former_end) ? former_end : begin;
  if (!std::is_sorted(middle, end)) sort_items(std::span(middle, end));
  order.places.clear();
  const Sortable* last = nullptr;
  bool sound = true;
  for (auto old = begin, fresh = middle; old != middle || fresh != end;) {
    const bool take_fresh = old == middle || (fresh != end && *fresh < *old);
    const Sortable* next = take_fresh ? fresh++ : old++;
    sound &= last == nullptr ? !(next->key < low) : *last < *next;
    order.places.push(next->slot);
    last = next;
  }
  return sound && (last == nullptr || leaf.covers(last->key));
}

/// Asks for the entries of a leaf.
template <class K>
void LeafScanner<K>::prefetch_entries(const Leaf<K>& leaf) const {
  const Block& block = leaf.block();
  for (unsigned i = 0; i < leaf.capacity(); i += pm::kLineSize / sizeof(Entry))
    __builtin_prefetch(&block.entries[i]);
}

/// Asks for what a scan needs of the next leaf.
template <class K>
void LeafScanner<K>::prefetch_next(const Leaf<K>& next) const {
  prefetch_order(next);
  prefetch_entries(next);
}

/// Whether the order that a leaf has, if it counts, is the right one (O1).
template <class K>
bool LeafScanner<K>::order_sound(const Leaf<K>& leaf, Key low) const {
  Order kept, anew;
  anew.visible = leaf.visible_slots();
  if (!memory_.orders().read(memory_.number_of(leaf), anew.visible, kept.places)) return true;
  settle(leaf, low, kept.places);
  sort_slots(leaf, low, anew);
  return std::ranges::equal(kept.places.span(), anew.places.span());
}

/// Finds the leaf's last pairs for the target. False if the leaf was replaced while it was read.
template <class K>
bool LeafScanner<K>::collect_last(const LeafRef<K>& place, const Target& target, Order& order,
                                  LastPairs& last) const {
  const Leaf<K>& leaf = *place.leaf;
  prefetch_entries(leaf);
  last.clear();
  // The leaf's integers share the high bits of the position only, which is just below the bound.
  const Key from = Codec<K>::kInline ? target.position : target.bound;
  const unsigned below = sort_and_find(place, from, order);
  for (unsigned end = std::min(below + 1, order.places.size()); end > 0 && !last.full(); --end) {
    const Entry& entry = leaf.block().entries[order.places[end - 1]];
    const Word word = pm::load(entry.key);
    if (Layout::state(word) == State::special) continue;  // it is dead by now
    const Word key = Layout::key(word, target.position);
    if (target.reaches(keys_.view(key))) last.add(key, pm::load(entry.value));
  }
  entries_.persist_unpersisted(leaf, order.visible);
  return place.current();
}

template class LeafScanner<std::uint64_t>;
template class LeafScanner<std::string>;

}  // namespace perdix::detail::index::nbtree
