#include "index/sptree/smo.h"

#include <algorithm>
#include <array>
#include <new>

#include "alloc/session.h"
#include "index/common/separator.h"

namespace perdix::detail::index::sptree {
namespace {

/// Two neighbours with fewer pairs than this together are merged: half of a leaf (§4.5).
constexpr unsigned kMergeBelow = kLeafPairs / 2;

}  // namespace

/// A pair of a node: in a slot of the leaf, or, from kLeafPairs on, in the write buffer.
template <class K>
struct Structure<K>::Entry {
  Key key;
  Hash16 hash;
  std::uint8_t place;

  bool buffered() const { return place >= kLeafPairs; }

  friend bool operator<(const Entry& a, const Entry& b) { return a.key < b.key; }
};

/// How a node's pairs are divided: entries[0, kept) stay, the others move; `separator` is the new
/// leaf's low bound.
template <class K>
struct Structure<K>::Division {
  std::array<Entry, kLeafPairs + kBufferPairs> entries;
  unsigned size = 0;
  unsigned kept = 0;
  Key separator{};

  auto begin() { return entries.begin(); }
  auto middle() { return entries.begin() + kept; }
  auto end() { return entries.begin() + size; }

  std::span<Entry> staying() { return {begin(), middle()}; }
  std::span<Entry> moving() { return {middle(), end()}; }

  void divide(bool last_leaf, bool roomy, Key key);

 private:
  bool bisect();
};

/// Divides integer keys at the middle between the least and the largest. Returns false if too many
/// lie on one side, or keys are strings: then only the order of the entries may have changed. Takes
/// a quarter of the time of nth_element(), every other branch of which is mispredicted: no branch
/// here depends on a key.
template <class K>
bool Structure<K>::Division::bisect() {
  // Each side gets at least this many sixteenths; the pairs that stay have room beside the slots
  // that the chain erases.
  constexpr unsigned kMinShare = 7;
  static_assert((kLeafPairs + kBufferPairs) * (16 - kMinShare) / 16 + 1 + kBufferPairs <=
                kLeafPairs);
  if constexpr (Keys::kInline) {
    Key least = begin()->key, largest = least;
    for (const Entry& entry : std::span(begin(), end())) {
      least = std::min(least, entry.key);
      largest = std::max(largest, entry.key);
    }
    const Key last_below = least + (largest - least) / 2;
    std::array<Entry, kLeafPairs + kBufferPairs> above;
    unsigned below = 0;
    for (unsigned i = 0; i < size; ++i) {
      const Entry entry = entries[i];
      entries[below] = entry;
      above[i - below] = entry;
      below += entry.key <= last_below ? 1 : 0;
    }
    std::copy_n(above.begin(), size - below, entries.begin() + below);
    kept = below;
    separator = last_below + 1;
    return std::min(below, size - below) >= size * kMinShare / 16;
  }
  return false;
}

/// About the upper half moves. But if `key` is larger than all keys of the last leaf, only pairs
/// that a leaf cannot hold move, often none: the new leaf is for the key and its successors, so
/// that ascending loads fill leaves completely. `roomy`: no slot of the leaf is taken by an erased
/// pair.
template <class K>
void Structure<K>::Division::divide(bool last_leaf, bool roomy, Key key) {
  if (last_leaf && roomy) {
    const Key largest = std::max_element(begin(), end())->key;
    if (largest < key) {
      kept = std::min(size, kLeafPairs);
      std::nth_element(begin(), middle(), end());
      const bool all_stay = kept == size;
      separator = shortest_separator(std::max_element(begin(), middle())->key,
                                     all_stay ? key : std::min_element(middle(), end())->key);
      return;
    }
  }
  if (bisect()) return;
  kept = size / 2;
  std::nth_element(begin(), middle(), end());
  separator = shortest_separator(std::max_element(begin(), middle())->key, middle()->key);
}

/// All pairs of the locked node, not divided yet.
template <class K>
auto Structure<K>::all_pairs(const Node& node) const -> Division {
  Division division;
  const auto add = [&](Word key, unsigned place) {
    division.entries[division.size++] = {parts_.leaves.keys().view(key), Keys::hash16_of_word(key),
                                         static_cast<std::uint8_t>(place)};
  };
  for (const unsigned slot : node.slots()) add(pm::load(pair_at(*node.leaf(), slot).key), slot);
  const Buffer* buffer = parts_.buffers.of(node);
  for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i)
    add(buffer->key(i), kLeafPairs + i);
  return division;
}

/// The words of one of the node's pairs.
template <class K>
Pair Structure<K>::pair_of(const Node& node, const Entry& entry) const {
  if (!entry.buffered()) return pair_at(*node.leaf(), entry.place);
  const Buffer& buffer = *parts_.buffers.of(node);
  const unsigned i = entry.place - kLeafPairs;
  return {buffer.key(i), buffer.value(i)};
}

template <class K>
void Structure<K>::split(Node& node, Key key) {
  Leaf& left = *node.leaf();
  prefetch_pairs(left);
  alloc::Session session = parts_.pool.allocator().session();
  const pm::Offset offset = session.reserve(sizeof(Leaf));
  Leaf& right = *parts_.pool.template at<Leaf>(offset);
  prefetch_half_for_write(right);

  Division division = all_pairs(node);
  const SlotSet taken = parts_.buffers.taken_slots(node);
  division.divide(NodeBounds::is_open(node.high.load(std::memory_order_relaxed)),
                  taken == node.slots(), key);
  const Word low = parts_.leaves.keys().write(session, division.separator);
  // DRAM before the commit: when it runs out, the session gives its blocks back and nothing has
  // changed.
  Node* right_node = parts_.nodes.make_with_bound(right, division.separator,
                                                  node.high.load(std::memory_order_relaxed));
  const std::uint64_t link = staged_link(left, offset);
  try {
    session.commit_when(left.link, ~std::uint64_t{0}, link);
  } catch (...) {
    parts_.nodes.release_with_bound(right_node);
    throw;
  }

  const SlotSet moved_slots = write_right(node, division.moving(), low, *right_node);
  // Means nothing before the commit, which is in the same line and whose flush takes it along.
  stage_slots(pm(), left, taken - moved_slots);
  session.commit(pm::set_word(left.link, link));  // from here on the new leaf owns what moved
  parts_.leaves.count_bytes(parts_.leaves.keys().footprint(low));

  pm::on_step("sptree: a leaf was split");
  restage_left(node, division.staying(), taken - moved_slots);
  link_right(node, right_node);
}

/// Writes the leaf and the middle node at the right of a node that is being split: the pairs that
/// move, the low bound and the link. Only flushes. Returns the slots of the node's leaf whose pairs
/// move.
template <class K>
SlotSet Structure<K>::write_right(const Node& node, std::span<Entry> moving, Word low,
                                  Node& right_node) {
  Leaf& right = *right_node.leaf();
  pm().zero(&right, offsetof(Leaf, pairs));
  pm().store(right.magic, kLeafMagic);
  pm().store(right.link, successor_of(*node.leaf()));
  pm().store(right.low, low);
  SlotSet moved_slots, right_slots;
  for (const Entry& entry : moving) {
    const Pair pair = pair_of(node, entry);
    const unsigned slot = free_slot(right_slots, entry.hash);
    pm().copy(&pair_at(right, slot), &pair, sizeof(Pair));
    right_slots.add(slot);
    right_node.add(slot, entry.hash);
    if (!entry.buffered()) moved_slots.add(entry.place);
  }
  for (unsigned i = 0; i < SlotSet::kWords; ++i)
    pm().store(right.bitmaps[0][i], right_slots.word(i));
  // Flushed only: log() fences before the new leaf can be linked.
  pm().flush(&right, offsetof(Leaf, pairs));
  flush_pairs(pm(), right, right_slots);
  return moved_slots;
}

/// Completes the left node after a split. `entries` are its pairs, `taken` is its leaf's bitmap.
/// The buffered pairs are written to the leaf. Pairs that were guests because their column was full
/// move to their column: otherwise lookups of that column would always compare other pairs, too. By
/// two-phase insertion, so that a crash finds each pair of the leaf in one slot. Slots that the
/// chain erases are not used before it has ended.
template <class K>
void Structure<K>::restage_left(Node& node, std::span<Entry> entries, SlotSet taken) {
  Leaf& leaf = *node.leaf();
  SlotSet added, left;
  const auto store_in = [&](unsigned slot, Entry& entry) {
    const Pair pair = pair_of(node, entry);
    // Stored by words: a reader that will retry may be looking at the slot.
    pm().store(pair_at(leaf, slot).key, pair.key);
    pm().store(pair_at(leaf, slot).value, pair.value);
    added.add(slot);
    entry.place = static_cast<std::uint8_t>(slot);
  };
  for (Entry& entry : entries) {
    if (entry.buffered()) store_in(free_slot(taken | added, entry.hash), entry);
  }
  for (Entry& entry : entries) {
    if (column_of_slot(entry.place) == column(entry.hash)) continue;
    const SlotSet free = slots_of_column(column(entry.hash)) - (taken | added);
    if (free.empty()) continue;
    left.add(entry.place);
    store_in(free.first(), entry);
  }
  Buffer* buffer = parts_.buffers.of(node);
  const SlotSet erased = buffer == nullptr ? SlotSet() : buffer->erased_slots();
  const SlotSet slots = (taken | added) - left - erased;
  if (!added.empty()) {
    flush_pairs(pm(), leaf, added);
    pm().fence();  // phase 1: the copies are durable before their bits can be
  }
  if (!left.empty()) pm::on_step("sptree: bring pairs back into their columns");
  if (slots != taken) publish_slots(pm(), leaf, slots);  // phase 2: the commit
  // Before the END, whose lock waits for what has been published.
  node.clear();
  for (const Entry& entry : entries) node.add(entry.place, entry.hash);
  if (buffer != nullptr) {
    pm::on_step("sptree: a split ends a chain");
    PairRecords<K>::end(*parts_.buffers.log(), *buffer);  // its content is durable
    parts_.buffers.shed(*buffer);
  }
}

/// Makes the new right neighbour of the locked node reachable in DRAM. Readers of `node` retry,
/// since its lock is held.
template <class K>
void Structure<K>::link_right(Node& node, Node* right) {
  parts_.nodes.set_next(*right, parts_.nodes.next_of(node));
  parts_.nodes.set_next(node, right);
  node.high.store(NodeBounds::end_at(right->low), std::memory_order_release);
  pm::on_step("sptree: publish a node");
  parts_.top.publish_node(*right);
  parts_.hints.note(node);
  parts_.hints.note(*right);
  parts_.backup.enqueue(*right);
  parts_.nodes.count(1);  // last: it waits for all stores before it
}

template <class K>
void Structure<K>::clean(wal::Chain& chain, bool may_split) {
  const epoch::Guard guard;
  const auto held = parts_.buffers.hold_home_of(static_cast<Buffer&>(chain));
  if (!held) return;
  Node& node = *held.place;
  if (parts_.buffers.merge(node)) return parts_.buffers.shed(node);
  if (may_split) split(node, NodeBounds::view(node.low));
}

/// Whether the locked node and its right neighbour should become one: they are sparse, or one of
/// them is empty.
template <class K>
bool Structure<K>::mergeable(const Node& node) const {
  const Node* next = parts_.nodes.next_of(node);
  if (next == nullptr) return false;
  const unsigned count = parts_.buffers.count(node);
  const unsigned next_count = parts_.buffers.count(*next);
  return count == 0 || next_count == 0 || count + next_count < kMergeBelow;
}

/// To look at the right neighbour costs three lines of DRAM, so only every fourth erase does so. To
/// look at the left neighbour also costs a search, since locks are taken from left to right, so
/// only every eighth erase does so.
template <class K>
void Structure<K>::merge_around(LockedNode node) {
  constexpr unsigned kRightEvery = 4, kLeftEvery = 8;
  const unsigned count = parts_.buffers.count(*node);
  if (count >= kMergeBelow || count % kRightEvery != 0) return;
  if (mergeable(*node)) return try_to_merge(*node);
  if (count % kLeftEvery != 0 || &*node == parts_.top.head()) return;
  const auto low = node->low;  // outlives the node: the caller's guard holds
  { const LockedNode unlocked = std::move(node); }
  const LockedNode left = lock_left_of(NodeBounds::view(low));
  if (mergeable(*left)) try_to_merge(*left);
}

/// Locks the node that ends where the key begins, or one further left if the nodes change in
/// between.
template <class K>
auto Structure<K>::lock_left_of(Key key) -> LockedNode {
  for (;;) {
    Node* left = parts_.top.left_of(key);
    const Version version = left->lock.read_begin();
    if (!Node::Lock::obsolete(version) && left->lock.try_upgrade(version)) return LockedNode(left);
  }
}

/// Removes a node that is about to be merged away from the backup (L8), and then from the top
/// layer. Returns false if there is no space or memory for that; then the backup may lack a leaf
/// that stays, as it may lack others. A leaf that is still in the queue to the backup is dropped
/// from there (WordTree::back_up()).
template <class K>
bool Structure<K>::unlink(const Node& node) {
  if (!parts_.backup.remove(node)) return false;
  pm::on_step("sptree: a node leaves the top layer");
  return parts_.top.unlink_node(node);
}

/// Undoes unlink(): adds the node to the top layer, and enqueues it for the backup.
template <class K>
void Structure<K>::undo_unlink(Node& node) noexcept {
  parts_.top.publish_node(node);
  parts_.backup.enqueue(node);
}

/// Merges the locked node with the next one if there is memory and space for that. If not, a later
/// erase tries again: the caller's own change is done.
template <class K>
void Structure<K>::try_to_merge(Node& node) {
  try {
    merge_with_next(node);
  } catch (const std::bad_alloc&) {
    // Another erase tries again.
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
  }
}

/// Moves the pairs of the right neighbour into the locked node, and removes the neighbour. If it
/// throws, both are as they were.
template <class K>
void Structure<K>::merge_with_next(Node& node) {
  Node* right_node = parts_.nodes.next_of(node);
  // Locks are taken from left to right. The right node is not obsolete: only a holder of its left
  // neighbour's lock makes it so.
  right_node->lock.lock();
  LockedNode right_lock(right_node);
  if (!mergeable(node)) {
    pm::on_step("sptree: a neighbour grew before it was locked");
    return;
  }
  parts_.leaf_orders.outdate(node);  // the erase that led here has carried it over
  // The chains must end first: they name slots and keys, which change with the range.
  if (!parts_.buffers.merge(node) || !parts_.buffers.merge(*right_node)) return;
  if (!unlink(*right_node)) return;  // merging can wait

  Leaf& left = *node.leaf();
  Leaf& right = *right_node->leaf();
  alloc::Session session = parts_.pool.allocator().session();
  const std::uint64_t link = staged_link(left, successor_of(right));
  try {  // before the node changes: this throws where the pool is damaged, or memory is out
    session.free(parts_.pool.offset(&right));
    Keys::free(session, right.low);
    session.commit_when(left.link, ~std::uint64_t{0}, link);
  } catch (...) {
    undo_unlink(*right_node);
    throw;
  }
  copy_pairs(*right_node, node);

  const std::int64_t low_bytes = parts_.leaves.keys().footprint(right.low);
  session.log();
  stage_slots(pm(), left, node.slots());
  pm().publish(left.link, link);  // the commit
  session.finish();
  parts_.leaves.count_bytes(-low_bytes);

  pm::on_step("sptree: leaves were merged");
  parts_.nodes.set_next(node, parts_.nodes.next_of(*right_node));
  node.high.store(right_node->high.load(std::memory_order_relaxed), std::memory_order_release);
  parts_.nodes.count(-1);
  parts_.hints.note(node);
  if (right_node->buffer() != 0) parts_.buffers.release(parts_.buffers.take_buffer(*right_node));
  right_lock.release()->lock.unlock_obsolete();
  parts_.nodes.retire(right_node);
}

/// Copies the pairs of a node's leaf into free slots of another one. Both are locked. Only flushes:
/// log() fences before the bits of the slots count.
template <class K>
void Structure<K>::copy_pairs(const Node& from, Node& to) {
  Leaf& leaf = *to.leaf();
  const SlotSet old_slots = to.slots();
  for (const unsigned source : from.slots()) {
    const Pair& pair = pair_at(*from.leaf(), source);
    const Hash16 hash = Keys::hash16_of_word(pair.key);
    const unsigned target = free_slot(to.slots(), hash);
    // Stored by words: a reader that will retry may be looking at the slot.
    pm().store(pair_at(leaf, target).key, pair.key);
    pm().store(pair_at(leaf, target).value, pair.value);
    to.add(target, hash);
  }
  flush_pairs(pm(), leaf, to.slots() - old_slots);  // fenced by the caller's log()
}

template class Structure<std::uint64_t>;
template class Structure<std::string>;

}  // namespace perdix::detail::index::sptree
