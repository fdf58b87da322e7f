// Ordered iteration, which the paper has not: leaf by leaf. A leaf's entries are unsorted; a scan
// keeps their order in DRAM for the next one (common/scan_orders.h). Its stamp is the set of
// visible slots: a slot keeps its key for as long as it is visible and not dead.
//
// Each pair that is shown was there at a moment while its leaf was read, and each key that is
// passed over was not: as for a lookup, see durability/nbtree.md. Nothing is shown before it is
// durable.
#include <algorithm>
#include <array>

#include "index/nbtree/nbtree.h"

namespace perdix::index::nbtree {

static_assert(kCapacity <= Places::kMost);

/// Slots of a leaf in the order of their keys.
template <class K>
struct WordTree<K>::Order {
  std::uint64_t visible = 0;  ///< slots that were when it was made
  bool kept = false;          ///< it is that which the leaf has already
  bool sound = false;         ///< it was made anew, and the leaf is not damaged as far as it shows
  Places places;              ///< without those that were dead then
};

/// Adds at most `limit` pairs of a leaf with key >= from, ascending. False if the leaf was replaced
/// meanwhile.
template <class K>
template <class ScanBatch>
bool WordTree<K>::collect(const LeafRef<K>& place, Key from, std::size_t limit, Order& order,
                          ScanBatch& into) const {
  const Leaf<K>& leaf = *place.leaf;
  prefetch_entries(leaf);
  prefetch_after(leaf);
  into.clear();
  const unsigned first = sort_and_find(place, from, order);
  const std::span rest = order.places.span().subspan(first);
  for (const PlaceInLeaf slot : rest) {
    const Entry& entry = leaf.block().entries[slot];
    const Word word = pm::load(entry.key);
    if (Code::state(word) == State::special) continue;
    into.add(keys_.view(Code::key(word, from)), pm::load(entry.value));
    if (--limit == 0) break;
  }
  entries_.settle_doubts(leaf, order.visible);
  return place.current();
}

/// The order of the leaf's pairs, and how many of its keys are below `from`.
template <class K>
unsigned WordTree<K>::sort_and_find(const LeafRef<K>& place, Key from, Order& order) const {
  const Leaf<K>& leaf = *place.leaf;
  order.visible = leaf.visible_slots();
  order.kept = memory_.orders().read(memory_.number_of(leaf), order.visible, order.places);
  order.sound = !order.kept && sort_slots(leaf, place.at->low(), order);
  std::optional<unsigned> first = first_from(leaf, order.places, from);
  for (; !first; first = first_from(leaf, order.places, from))
    order.sound = sort_slots(leaf, place.at->low(), order);
  return *first;
}

/// How many keys are below `from`, which is in the leaf's range. Nothing if that can't be found out
/// since one of them is dead by now.
template <class K>
std::optional<unsigned> WordTree<K>::first_from(const Leaf<K>& leaf, const Places& places,
                                                Key from) const {
  unsigned first = 0;
  for (unsigned size = places.size(); size > 0;) {
    const unsigned half = size / 2;
    const Word word = pm::load(leaf.block().entries[places[first + half]].key);
    if (Code::state(word) == State::special) return std::nullopt;
    const bool below = keys_.view(Code::key(word, from)) < from;
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
bool WordTree<K>::sort_slots(const Leaf<K>& leaf, Key low, Order& order) const {
  struct Sortable {
    Key key;
    PlaceInLeaf slot;
    bool operator<(const Sortable& other) const { return key < other.key; }
  };
  std::array<Sortable, kCapacity> sorted;
  unsigned size = 0;
  const auto add = [&](unsigned slot) {
    const Word word = pm::load(leaf.block().entries[slot].key);
    if (Code::state(word) == State::special) return;
    sorted[size++] = {keys_.view(Code::key(word, low)), static_cast<PlaceInLeaf>(slot)};
  };
  std::uint64_t left = order.visible;
  for (const PlaceInLeaf slot : order.places.span()) {
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
  if (!std::is_sorted(middle, end)) std::sort(middle, end);
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
void WordTree<K>::prefetch_entries(const Leaf<K>& leaf) const {
  const Block& block = leaf.block();
  for (unsigned i = 0; i < leaf.capacity(); i += pm::kLineSize / sizeof(Entry))
    __builtin_prefetch(&block.entries[i]);
}

/// Asks for the leaf that follows.
template <class K>
void WordTree<K>::prefetch_after(const Leaf<K>& leaf) const {
  const Position<K>* next = leaf.next();
  if (next == nullptr) return;
  const Leaf<K>* there = next->leaf.load(std::memory_order_acquire);
  if (there == nullptr || is_cold(there)) return;
  there->prefetch();
  memory_.orders().prefetch(memory_.number_of(*there));
}

template <class K>
bool WordTree<K>::order_kept(Key key) const {
  const epoch::Guard guard;
  const Leaf<K>& leaf = *locate(key).leaf;
  Places places;
  return memory_.orders().read(memory_.number_of(leaf), leaf.visible_slots(), places);
}

/// Whether the order that a leaf has, if it counts, is the right one (O1).
template <class K>
bool WordTree<K>::order_sound(const Leaf<K>& leaf, Key low) const {
  Order kept, anew;
  anew.visible = leaf.visible_slots();
  if (!memory_.orders().read(memory_.number_of(leaf), anew.visible, kept.places)) return true;
  sort_slots(leaf, low, anew);
  return std::ranges::equal(kept.places.span(), anew.places.span());
}

template <class K>
template <class ScanBatch, class Values>
bool WordTree<K>::read_batch(ScanBatch& batch, const Values& values, K& position,
                             std::size_t limit) const {
  const epoch::Guard guard;
  Order order;
  LeafRef<K> place = locate(position);
  memory_.orders().prefetch(memory_.number_of(*place.leaf));
  while (!collect(place, position, limit, order, batch)) place = locate_again(position);
  batch.own(pool(), values, limit);
  if (order.sound)
    memory_.orders().keep(memory_.number_of(*place.leaf), order.visible, order.places);
  pool().require_usable();  // what was read may have been there before a sync failed
  if (!batch.complete()) {
    position = batch.next_key();
  } else if (place.leaf->next() != nullptr) {
    position = place.leaf->end();
    batch.require_below(pool(), position);
  } else {
    return false;
  }
  return true;
}

template <class K, class V>
void Tree<K, V>::scan(Key from, Visitor<K, V> visit, std::size_t limit) const {
  using ScanBatch = Batch<K, V, kCapacity>;
  scan_by_batches<ScanBatch, K, V>(this->pool(), from, visit, limit,
                                   [this](ScanBatch& batch, K& position, std::size_t left) {
                                     return this->read_batch(batch, values_, position, left);
                                   });
}

/// Finds the leaf's last pair with a key that is not above `key`, if there is one. False if the
/// leaf was replaced meanwhile.
template <class K>
bool WordTree<K>::last_up_to(const LeafRef<K>& place, Key key, Order& order,
                             std::optional<Entry>& last) const {
  const Leaf<K>& leaf = *place.leaf;
  last.reset();
  const unsigned below = sort_and_find(place, key, order);
  for (unsigned end = std::min(below + 1, order.places.size()); end > 0 && !last; --end) {
    const Entry& entry = leaf.block().entries[order.places[end - 1]];
    const Word word = pm::load(entry.key);
    if (Code::state(word) == State::special) continue;  // it is dead by now
    const Word key_word = Code::key(word, key);
    if (!(key < keys_.view(key_word))) last = Entry{key_word, pm::load(entry.value)};
  }
  entries_.settle_doubts(leaf, order.visible);
  return place.current();
}

/// The pair of the greatest key that is not above `key`, with the key's whole word. Leaf by leaf to
/// the left, until one has such a key.
template <class K>
std::optional<Entry> WordTree<K>::find_last(Key key) const {
  K position(key);
  for (;;) {
    Order order;
    std::optional<Entry> last;
    LeafRef<K> place = locate(position);
    // Before last_up_to() validates the place: an anchor, where low bounds of integers are, may
    // become that of another position.
    Key low = place.at->low();
    while (!last_up_to(place, position, order, last)) {
      place = locate_again(position);
      low = place.at->low();
    }
    if (order.sound)
      memory_.orders().keep(memory_.number_of(*place.leaf), order.visible, order.places);
    if (last) return last;
    const auto before = predecessor(low);
    if (!before) return std::nullopt;  // that was the first leaf
    position = *before;
  }
}

template bool WordTree<std::uint64_t>::order_kept(Key) const;
template bool WordTree<std::string>::order_kept(Key) const;
template bool WordTree<std::uint64_t>::order_sound(const Leaf<std::uint64_t>&, Key) const;
template bool WordTree<std::string>::order_sound(const Leaf<std::string>&, Key) const;
template std::optional<Entry> WordTree<std::uint64_t>::find_last(Key) const;
template std::optional<Entry> WordTree<std::string>::find_last(Key) const;
template class Tree<std::uint64_t, std::uint64_t>;
template class Tree<std::uint64_t, std::string>;
template class Tree<std::string, std::uint64_t>;
template class Tree<std::string, std::string>;

}  // namespace perdix::index::nbtree
