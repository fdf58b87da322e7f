// Ordered iteration (Zhao et al. 2024, section 4.4, Algorithm 1): leaf by leaf, each as it was at
// one moment.
//
// A leaf's pairs are unsorted, and so are those of its write buffer. The paper sorts a leaf once
// per change and keeps the order in the leaf (`seqs`, `sort_ver`). Here a scan keeps the order in
// DRAM, of the pairs in both places together (common/scan_orders.h); its stamp is the version of
// the node's lock. Algorithm 1 merges the buffer into the leaf first, and sorts under the leaf's
// lock; a scan here writes nothing to PM and takes no lock.
#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "index/sptree/sptree.h"

namespace perdix::index::sptree {

namespace {

/// Sorts numbers, of which there are as many as a leaf has pairs at most. Each goes to its rank,
/// which is found by comparing it with all: that takes no branch and many at once, and so a
/// fraction of the time of std::sort. `Item` has a key and is copied.
template <class Item>
void sort_by_rank(std::span<Item> items) {
  std::array<std::uint64_t, Places::kMost> keys;
  std::array<Item, Places::kMost> sorted;
  const auto size = static_cast<unsigned>(items.size());
  for (unsigned i = 0; i < size; ++i) keys[i] = items[i].key;
  for (unsigned i = 0; i < size; ++i) {
    const std::uint64_t key = keys[i];
    std::uint64_t rank = 0;
    for (unsigned j = 0; j < i; ++j) rank += keys[j] <= key ? 1 : 0;
    for (unsigned j = i + 1; j < size; ++j) rank += keys[j] < key ? 1 : 0;
    sorted[rank] = items[i];
  }
  std::copy_n(sorted.begin(), size, items.begin());
}

}  // namespace

static_assert(kLeafPairs + kBufferPairs <= Places::kMost);

/// The pairs of one leaf and its write buffer.
template <class K, class V>
struct Tree<K, V>::ScanBatch : Batch<K, V, kLeafPairs + kBufferPairs> {
  std::size_t read = 0;  ///< pairs of all batches so far

  /// How many pairs to read next. A scan says nothing of its end before it is there, so it is taken
  /// to go on for about as long as it has: what is read beyond the end was read for nothing.
  std::size_t worth_reading() const {
    constexpr std::size_t kLeast = 32;
    return read == 0 ? kLeafPairs : std::max(kLeast, read);
  }
};

/// The order of a node's pairs in the state that a version of its lock names.
template <class K>
struct WordTree<K>::Order {
  const Node* node = nullptr;
  Version version = 0;
  bool kept = false;   ///< it is that which the node has already
  bool sound = false;  ///< it was made anew, and the leaf is not damaged as far as it shows
  Places places;
};

/// A place and its key.
template <class K>
struct WordTree<K>::Sortable {
  Key key;
  PlaceInLeaf place;

  friend bool operator<(const Sortable& a, const Sortable& b) { return a.key < b.key; }
};

/// The pairs of a node by their places: slots of the leaf and, from kLeafPairs on, of the write
/// buffer. What is read counts only if the node's version is validated afterwards. Until then any
/// place may be asked for: the node may have lost its buffer since the places were listed, or got
/// another one, whose unused pairs hold words of strings that are gone.
template <class K>
class WordTree<K>::PairsByPlace {
 public:
  PairsByPlace(const Leaf& leaf, const Buffer* buffer) : leaf_(leaf), buffer_(buffer) {}

  Word key(PlaceInLeaf place) const {
    if (place < kLeafPairs) return pm::load(pair_at(leaf_, place).key);
    return is_buffered(place) ? buffer_->key(place - kLeafPairs) : 0;
  }
  Word value(PlaceInLeaf place) const {
    if (place < kLeafPairs) return pm::load(pair_at(leaf_, place).value);
    return is_buffered(place) ? buffer_->value(place - kLeafPairs) : 0;
  }

 private:
  bool is_buffered(PlaceInLeaf place) const {
    return buffer_ != nullptr && place - kLeafPairs < buffer_->size();
  }

  const Leaf& leaf_;
  const Buffer* buffer_;  // nullptr: the node has none
};

/// Adds at most `limit` pairs with key >= from, ascending. The result counts only if the node's
/// version is validated afterwards.
template <class K>
template <class Batch>
void WordTree<K>::collect(const Node& node, Key from, std::size_t limit, Order& order,
                          Batch& into) const {
  prefetch_pairs(*node.leaf());
  if (const Node* next = nodes_.next_of(node)) {
    __builtin_prefetch(next);
    orders_.prefetch_link(nodes_.number_of(*next));
  }
  into.clear();
  read_order(node, order);
  const PairsByPlace pairs(*node.leaf(), buffers_.of(node));
  const std::span places = order.places.span();
  const std::span rest = places.subspan(first_from(pairs, order.places, from));
  for (const PlaceInLeaf place : rest.first(std::min(limit, rest.size())))
    into.add(keys().view(pairs.key(place)), pairs.value(place));
}

/// How many keys are below `from`.
template <class K>
unsigned WordTree<K>::first_from(const PairsByPlace& pairs, const Places& places, Key from) const {
  const auto below = [&](unsigned i) { return keys().view(pairs.key(places[i])) < from; };
  unsigned size = places.size();
  if (size == 0 || !below(0)) return 0;  // as a rule, but in the first leaf of a scan
  unsigned first = 0;
  while (size > 1) {  // key `first` is below, key `first + size` is not
    const unsigned half = size / 2;
    if constexpr (!Keys::kInline) {
      keys().prefetch(pairs.key(places[first + half / 2]));  // one of them will be the next
      keys().prefetch(pairs.key(places[first + half + (size - half) / 2]));
    }
    first += below(first + half) ? half : 0;
    size -= half;
  }
  return first + 1;
}

/// The order of the node's pairs: the one that was kept, or, if that is not of this state, made
/// anew.
template <class K>
void WordTree<K>::read_order(const Node& node, Order& order) const {
  order.node = &node;
  order.version = node.lock.read_begin();
  order.kept = orders_.read(nodes_.number_of(node), order.version, order.places);
  order.sound = !order.kept && sort_places(node, order.places);
}

/// Puts the places of all pairs in the order of their keys. What `places` has before may be
/// anything: if it is an order from before a few changes, that costs one pass, and a search for
/// each new pair. False if a key is there twice or out of the node's range.
template <class K>
bool WordTree<K>::sort_places(const Node& node, Places& places) const {
  Places listed;
  const unsigned former = list_places(node, places, listed);
  const PairsByPlace pairs(*node.leaf(), buffers_.of(node));
  if constexpr (!Keys::kInline) {
    for (const PlaceInLeaf place : listed.span()) keys().prefetch(pairs.key(place));
  }
  std::array<Sortable, Places::kMost> sorted;
  for (unsigned i = 0; i < listed.size(); ++i)
    sorted[i] = {keys().view(pairs.key(listed[i])), listed[i]};
  const auto begin = sorted.begin(), end = begin + listed.size();
  // Two runs: what was in order and still is, and the rest. A slot that was filled again meanwhile
  // may have its key anywhere.
  const auto middle = std::is_sorted(begin, begin + former) ? begin + former : begin;
  if constexpr (Keys::kInline) {
    sort_by_rank(std::span(middle, end));
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

/// Lists the places of all pairs, and first those in `former`. Returns how many these are.
template <class K>
unsigned WordTree<K>::list_places(const Node& node, const Places& former, Places& into) const {
  const SlotSet slots = node.slots();
  std::array<std::uint64_t, 2> left = {slots.word(0), slots.word(1)};
  const Buffer* buffer = buffers_.of(node);
  unsigned buffered = buffer == nullptr ? 0 : (1u << std::min(buffer->size(), kBufferPairs)) - 1;
  for (const PlaceInLeaf place : former.span()) {
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

/// Asks for what the scan will need of the node that follows. A scan that has shown few pairs may
/// end before it comes there, and then the leaf is not worth its lines.
template <class K>
void WordTree<K>::prefetch_after(const Node& node, std::size_t read) const {
  constexpr std::size_t kFew = 48;
  const Node* next = nodes_.next_of(node);
  if (next == nullptr || (read >= kFew && read <= kLeafPairs / 2)) return;
  orders_.prefetch(nodes_.number_of(*next));
  prefetch_pairs(*next->leaf());
}

template <class K>
bool WordTree<K>::order_kept(Key key) const {
  const epoch::Guard guard;
  return read_node_from(top_.locate(key), key, [&](const Node& node) {
    Order order;
    read_order(node, order);
    return order.kept;
  });
}

/// Whether the order that the node has, if it counts, is the right one (O1).
template <class K>
bool WordTree<K>::order_sound(const Node& node) const {
  Order order;
  read_order(node, order);
  if (!order.kept) return true;
  Places anew;
  sort_places(node, anew);
  return std::ranges::equal(order.places.span(), anew.span());
}

/// As scan_by_batches() wants it: what there is in the leaf of a position.
template <class K>
template <class Batch, class Values>
bool WordTree<K>::read_batch(Batch& batch, const Values& values, K& position,
                             std::size_t limit) const {
  const epoch::Guard guard;
  Order order;
  Node* const start = top_.locate(position);
  orders_.prefetch(nodes_.number_of(*start));  // at the same time as the node
  const std::size_t most = std::min(limit, batch.worth_reading());
  const auto high = read_node_from(start, position, [&](const Node& node) {
    collect(node, position, most + 1, order, batch);  // and where the next batch begins
    return node.high.load(std::memory_order_acquire);
  });
  batch.own(pool(), values, most);
  if (order.sound) orders_.keep(nodes_.number_of(*order.node), order.version, order.places);
  pool().require_usable();  // what was read may have been there before a sync failed
  batch.read += batch.size();
  if (!batch.complete()) {
    position = batch.next_key();
  } else if (!NodeBounds::is_open(high)) {
    position = NodeBounds::after(high);
    batch.require_below(pool(), position);
    if (batch.size() < limit) prefetch_after(*order.node, batch.read);
  } else {
    return false;
  }
  return true;
}

template <class K, class V>
void Tree<K, V>::scan(Key from, Visitor<K, V> visit, std::size_t limit) const {
  scan_by_batches<ScanBatch, K, V>(this->pool(), from, visit, limit,
                                   [this](ScanBatch& batch, K& position, std::size_t left) {
                                     return this->read_batch(batch, values_, position, left);
                                   });
}

/// The words of the node's last pair with a key that is not above `key`. They count only if the
/// node's version is validated afterwards.
template <class K>
std::optional<Pair> WordTree<K>::last_up_to(const Node& node, Key key, Order& order) const {
  prefetch_pairs(*node.leaf());
  read_order(node, order);
  const PairsByPlace pairs(*node.leaf(), buffers_.of(node));
  const Places& places = order.places;
  unsigned end = first_from(pairs, places, key);
  if (end < places.size() && !(key < keys().view(pairs.key(places[end])))) ++end;  // the key itself
  if (end == 0) return std::nullopt;
  return Pair{pairs.key(places[end - 1]), pairs.value(places[end - 1])};
}

/// The words of the greatest key that is not above `key`. Leaf by leaf to the left, until one has
/// such a key.
template <class K>
std::optional<Pair> WordTree<K>::find_last(Key key) const {
  K position(key);
  for (;;) {
    Order order;
    const auto last = read_node_from(top_.locate(position), position, [&](const Node& node) {
      return last_up_to(node, position, order);
    });
    if (order.sound) orders_.keep(nodes_.number_of(*order.node), order.version, order.places);
    if (last) return last;
    const auto before = predecessor(NodeBounds::view(order.node->low));
    if (!before) return std::nullopt;  // that was the first leaf
    position = *before;
  }
}

template bool WordTree<std::uint64_t>::order_kept(Key) const;
template bool WordTree<std::uint64_t>::order_sound(const Mnode<std::uint64_t>&) const;
template std::optional<Pair> WordTree<std::uint64_t>::find_last(Key) const;
template bool WordTree<std::string>::order_kept(Key) const;
template bool WordTree<std::string>::order_sound(const Mnode<std::string>&) const;
template std::optional<Pair> WordTree<std::string>::find_last(Key) const;
template void Tree<std::uint64_t, std::uint64_t>::scan(Key, Visitor<std::uint64_t, std::uint64_t>,
                                                       std::size_t) const;
template void Tree<std::uint64_t, std::string>::scan(Key, Visitor<std::uint64_t, std::string>,
                                                     std::size_t) const;
template void Tree<std::string, std::uint64_t>::scan(Key, Visitor<std::string, std::uint64_t>,
                                                     std::size_t) const;
template void Tree<std::string, std::string>::scan(Key, Visitor<std::string, std::string>,
                                                   std::size_t) const;

}  // namespace perdix::index::sptree
