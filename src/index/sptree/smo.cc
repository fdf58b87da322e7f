// Structure modifications (sptree.txt §4.5): split a full leaf, merge two sparse neighbours.
//
// Both commit by one publish of the left leaf's `next`. The other word that must change with it,
// the left leaf's bitmap, is covered by the allocator's recyclable log: its record carries the
// bitmap to store if the commit happened (split: redo) or if it didn't (merge: undo). So no crash
// leaves a pair in a leaf whose range excludes it (the "stale copies" that the paper's protocol
// tolerates and a later merge brings back), and no leaf leaks.
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <new>

#include "alloc/session.h"
#include "index/common/separator.h"
#include "index/sptree/sptree.h"

namespace perdix::index::sptree {
namespace {

/// Two neighbours with fewer pairs than this together are merged: half of a leaf (§4.5).
constexpr unsigned kMergeBelow = kLeafPairs / 2;

constexpr std::uint64_t bit_of(unsigned slot) { return std::uint64_t{1} << slot; }

/// A pair of a node: in a slot of the leaf, or, from kLeafPairs on, in the write buffer.
template <class Key>
struct Entry {
  Key key;
  unsigned place;

  bool buffered() const { return place >= kLeafPairs; }
  unsigned in_buffer() const { return place - kLeafPairs; }

  friend bool operator<(const Entry& a, const Entry& b) { return a.key < b.key; }
};

/// How a node's pairs are divided: entries[0, kept) stay, the others move; `separator` is the new
/// leaf's low bound.
template <class Key>
struct Division {
  std::array<Entry<Key>, kLeafPairs + kBufferPairs> entries;
  unsigned size = 0;
  unsigned kept = 0;
  Key separator{};

  void add(Key key, unsigned place) { entries[size++] = {key, place}; }
  auto begin() { return entries.begin(); }
  auto middle() { return entries.begin() + kept; }
  auto end() { return entries.begin() + size; }
};

/// The upper half moves. But in the last leaf, if `key` would be the index's largest, only what a
/// leaf can't hold does, often nothing: the new leaf is for the key and its successors, so that
/// ascending loads fill leaves completely. `roomy`: the leaf has a slot for each pair it keeps.
template <class Key>
void divide(Division<Key>& division, bool last_leaf, bool roomy, Key key) {
  if (last_leaf && roomy) {
    const Key largest = std::max_element(division.begin(), division.end())->key;
    if (largest < key) {
      division.kept = std::min(division.size, kLeafPairs);
      std::nth_element(division.begin(), division.middle(), division.end());
      const bool all_stay = division.kept == division.size;
      division.separator = shortest_separator(
          std::max_element(division.begin(), division.middle())->key,
          all_stay ? key : std::min_element(division.middle(), division.end())->key);
      return;
    }
  }
  division.kept = division.size / 2;
  std::nth_element(division.begin(), division.middle(), division.end());
  division.separator = shortest_separator(
      std::max_element(division.begin(), division.middle())->key, division.middle()->key);
}

}  // namespace

/// Splits the locked node, so that `key` finds room in it or in its new right neighbour. What of
/// its write buffer moves becomes a part of the new leaf; the rest is merged, since the left leaf
/// has room for it then. So the chain ends before anything that it names can be changed.
template <class K, class V>
void Tree<K, V>::split(Node& node, Key key) {
  Leaf& left = *node.leaf();
  const Buffer* buffer = buffer_of(node);
  Division<Key> division;
  for (std::uint64_t rest = node.slots(); rest != 0; rest &= rest - 1) {
    const unsigned slot = static_cast<unsigned>(std::countr_zero(rest));
    division.add(keys_.view(pm::load(left.pairs[slot].key)), slot);
  }
  for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i)
    division.add(keys_.view(buffer->key(i)), kLeafPairs + i);
  divide(division, NodeBounds::is_open(node.high.load(std::memory_order_relaxed)),
         taken_slots(node) == node.slots(), key);

  alloc::Session session = pool().allocator().session();
  const pm::Offset offset = session.reserve(sizeof(Leaf));
  Leaf& right = *pool().template at<Leaf>(offset);
  const Word low = keys_.write(session, division.separator);
  // DRAM before the commit: when it runs out, the session gives its blocks back and nothing has
  // changed.
  Node* right_node =
      new_node(&right, division.separator, node.high.load(std::memory_order_relaxed));

  const unsigned moved = division.size - division.kept;
  pm().store(right.magic, kLeafMagic);
  pm().store(right.next, left.next);
  pm().store(right.low, low);
  std::uint64_t moved_slots = 0, right_slots = 0;
  for (unsigned i = 0; i < moved; ++i) {
    const Entry<Key>& entry = division.middle()[i];
    const Pair pair = entry.buffered()
                          ? Pair{buffer->key(entry.in_buffer()), buffer->value(entry.in_buffer())}
                          : left.pairs[entry.place];
    const Hash16 hash = Keys::hash16_of_word(pair.key);
    const unsigned slot = free_slot(right_slots, hash);
    pm().copy(&right.pairs[slot], &pair, sizeof(Pair));
    right_slots |= bit_of(slot);
    right_node->add(slot, hash);
    if (!entry.buffered()) moved_slots |= bit_of(entry.place);
  }
  pm().store(right.bitmap, right_slots);
  // Flushed only: log() fences before the new leaf can be linked.
  pm().flush(&right, offsetof(Leaf, pairs) + std::bit_width(right_slots) * sizeof(Pair));

  const std::uint64_t kept_bits = taken_slots(node) & ~moved_slots;
  session.commit_when(left.next, ~std::uint64_t{0}, offset);
  session.redo(left.bitmap, kept_bits);
  session.log();
  // The commit: from here on the moved pairs belong to the new leaf. Both words lie in one line, so
  // the bits are never cleared in PM before.
  pm().store(left.next, offset);
  pm().store(left.bitmap, kept_bits);
  // finish() fences: nothing is freed (rule R3), and until then the record's redo stands in.
  pm().flush(&left, offsetof(Leaf, pairs));
  session.finish();
  blob_bytes_.add(keys_.footprint(low));

  keep(node, node.slots() & ~moved_slots, division.separator);
  link_right(node, right_node);
}

/// What is left of a node that was split: these slots, and the buffered pairs below the separator.
template <class K, class V>
void Tree<K, V>::keep(Node& node, std::uint64_t slots, Key below) {
  node.bitmap.store(slots, std::memory_order_relaxed);
  if (Buffer* buffer = buffer_of(node)) {
    for (unsigned i = buffer->size(); i > 0; --i) {
      if (!(keys_.view(buffer->key(i - 1)) < below)) buffer->remove(i - 1);
    }
    [[maybe_unused]] const bool merged = merge_buffer(node);
    assert(merged);
  }
  straighten(node);
  fill_filter(node);
}

/// Brings pairs that a full column kept out back into it, now that half of the leaf is free: else
/// they would make lookups of that column compare others for ever. By two-phase insertion: a crash
/// finds each of them in one place. The chain is closed, so no slot means anything to the log.
template <class K, class V>
void Tree<K, V>::straighten(Node& node) {
  Leaf& leaf = *node.leaf();
  const std::uint64_t before = node.slots();
  std::uint64_t added = 0, left = 0;
  for (std::uint64_t rest = before; rest != 0; rest &= rest - 1) {
    const unsigned slot = static_cast<unsigned>(std::countr_zero(rest));
    const Pair& pair = leaf.pairs[slot];
    const Hash16 hash = Keys::hash16_of_word(pm::load(pair.key));
    const std::uint64_t free = slots_of_column(column(hash)) & ~(before | added);
    if (column_of_slot(slot) == column(hash) || free == 0) continue;
    const unsigned better = static_cast<unsigned>(std::countr_zero(free));
    pm().store(leaf.pairs[better].key, pm::load(pair.key));
    pm().store(leaf.pairs[better].value, pm::load(pair.value));
    added |= bit_of(better);
    left |= bit_of(slot);
  }
  if (added == 0) return;
  flush_pairs(leaf, added);
  pm().fence();  // phase 1: the copies are durable before their bits can be
  const std::uint64_t slots = (before | added) & ~left;
  pm().publish(leaf.bitmap, slots);  // phase 2: the commit
  node.bitmap.store(slots, std::memory_order_relaxed);
}

/// Makes the new right neighbour of the locked node reachable in DRAM. Readers of `node` retry,
/// since its lock is held.
template <class K, class V>
void Tree<K, V>::link_right(Node& node, Node* right) {
  right->next.store(node.next.load(std::memory_order_relaxed), std::memory_order_relaxed);
  node.next.store(right, std::memory_order_release);
  node.high.store(NodeBounds::end_at(right->low), std::memory_order_release);
  leaves_.add(1);
  try {
    top_.insert(NodeBounds::view(right->low), right);
  } catch (const std::bad_alloc&) {
    // The top layer may lag behind: the node is found by `next` of its left neighbour.
  }
  // Under the lock, which keeps the new leaf from being merged away.
  backup_->add(NodeBounds::view(right->low), pool().offset(right->leaf()));
}

/// Whether the locked node and its right neighbour should become one: they are sparse, or one of
/// them is empty.
template <class K, class V>
bool Tree<K, V>::mergeable(const Node& node) const {
  const Node* next = node.next.load(std::memory_order_acquire);
  if (next == nullptr) return false;
  const unsigned count = count_with_buffer(node);
  const unsigned next_count = count_with_buffer(*next);
  return count == 0 || next_count == 0 || count + next_count < kMergeBelow;
}

/// Merges after an erase from the node. Its right neighbour is looked at if it is sparse enough;
/// the left one at every eighth erase only, since finding it costs a search and locks are taken
/// from left to right.
template <class K, class V>
void Tree<K, V>::merge_around(LockedNode node) {
  constexpr unsigned kLeftEvery = 8;
  const unsigned count = count_with_buffer(*node);
  if (count >= kMergeBelow) return;
  if (mergeable(*node)) return merge_with_next(*node);
  if (count % kLeftEvery != 0 || &*node == head_) return;
  const auto low = node->low;  // outlives the node: the caller's guard holds
  { const LockedNode unlocked = std::move(node); }
  const LockedNode left = lock_left_of(NodeBounds::view(low));
  if (mergeable(*left)) merge_with_next(*left);
}

/// Locks the node that ends where the key begins, or further left if the nodes change meanwhile.
template <class K, class V>
auto Tree<K, V>::lock_left_of(Key key) -> LockedNode {
  for (;;) {
    Node* left = top_.find_below(key);
    if (left == nullptr) left = head_;
    const std::uint64_t version = left->lock.read_begin();
    if (!epoch::VersionLock::obsolete(version) && left->lock.try_upgrade(version))
      return LockedNode(left);
  }
}

/// Takes a node that is about to be merged away out of the backup (L8) and the top layer; false if
/// there was no space or memory for it. The backup first: it may lack a leaf that stays.
template <class K, class V>
bool Tree<K, V>::hide(const Node& node) {
  if (!backup_->remove(NodeBounds::view(node.low), pool().offset(node.leaf()))) return false;
  try {
    top_.erase(NodeBounds::view(node.low));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// Moves the pairs of the right neighbour into the locked node, and removes the neighbour.
template <class K, class V>
void Tree<K, V>::merge_with_next(Node& node) {
  Node* right_node = node.next.load(std::memory_order_acquire);
  right_node->lock.lock();  // left to right; it can't be obsolete: only the holder of its left
                            // neighbour's lock makes it so
  LockedNode right_lock(right_node);
  if (!mergeable(node)) return;  // it grew before it was locked
  // Closed chains first: what one says must not meet a range that has grown, or pairs that moved.
  if (!merge_buffer(node) || !merge_buffer(*right_node)) return;
  if (!hide(*right_node)) return;  // merging can wait

  Leaf& left = *node.leaf();
  Leaf& right = *right_node->leaf();
  const std::uint64_t old_slots = node.slots();
  alloc::Session session = pool().allocator().session();
  session.free(pool().offset(&right));
  Keys::free(session, right.low);
  // Before the node changes: this throws where the pool is damaged.
  session.commit_when(left.next, ~std::uint64_t{0}, right.next);
  for (std::uint64_t from = right_node->slots(); from != 0; from &= from - 1) {
    const unsigned source = static_cast<unsigned>(std::countr_zero(from));
    const Hash16 hash = Keys::hash16_of_word(right.pairs[source].key);
    const unsigned target = free_slot(node.slots(), hash);
    // Stored by words: a reader that will retry may be looking at the slot.
    pm().store(left.pairs[target].key, right.pairs[source].key);
    pm().store(left.pairs[target].value, right.pairs[source].value);
    node.add(target, hash);
  }
  flush_pairs(left, node.slots() & ~old_slots);  // log() fences before their bits are set

  blob_bytes_.add(-keys_.footprint(right.low));
  session.undo(left.bitmap, old_slots);
  session.log();
  // The bits must not come after the commit, which gives their keys to the left leaf; a crash in
  // between takes them back (undo). Not persisted apart: both words lie in one line.
  pm().store(left.bitmap, node.slots());  // its slots, durable since log()
  pm().publish(left.next, right.next);    // the commit
  session.finish();

  node.next.store(right_node->next.load(std::memory_order_relaxed), std::memory_order_release);
  node.high.store(right_node->high.load(std::memory_order_relaxed), std::memory_order_release);
  leaves_.add(-1);
  if (right_node->buffer() != 0) buffers_.release(take_from(*right_node));
  right_lock.release()->lock.unlock_obsolete();
  retire(right_node);
}

template void Tree<std::uint64_t, std::uint64_t>::split(Node&, Key);
template void Tree<std::uint64_t, std::string>::split(Node&, Key);
template void Tree<std::string, std::uint64_t>::split(Node&, Key);
template void Tree<std::string, std::string>::split(Node&, Key);
template void Tree<std::uint64_t, std::uint64_t>::merge_around(LockedNode);
template void Tree<std::uint64_t, std::string>::merge_around(LockedNode);
template void Tree<std::string, std::uint64_t>::merge_around(LockedNode);
template void Tree<std::string, std::string>::merge_around(LockedNode);

}  // namespace perdix::index::sptree
