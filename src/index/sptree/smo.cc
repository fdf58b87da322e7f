// Structure modifications (sptree.txt §4.5): split a full leaf, merge two sparse neighbours.
//
// Both commit by one publish of the left leaf's `next`. The other word that must change with it,
// the left leaf's bitmap, is covered by the allocator's recyclable log: its record carries the
// bitmap to store if the commit happened (split: redo) or if it didn't (merge: undo). So no crash
// leaves a pair in a leaf whose range excludes it (the "stale copies" that the paper's protocol
// tolerates and a later merge brings back), and no leaf leaks.
#include <algorithm>
#include <array>
#include <new>

#include "alloc/session.h"
#include "index/common/separator.h"
#include "index/sptree/sptree.h"

namespace perdix::index::sptree {
namespace {

/// Two neighbours with fewer pairs than this together are merged: half of a leaf (§4.5).
constexpr unsigned kMergeBelow = kLeafPairs / 2;

constexpr std::uint64_t bit_of(unsigned slot) { return std::uint64_t{1} << slot; }

/// The bitmap of a leaf whose first `count` slots are taken.
constexpr std::uint64_t first_slots(unsigned count) {
  return count == kLeafPairs ? kFullBitmap : bit_of(count) - 1;
}

template <class Key>
struct Entry {
  Key key;
  unsigned slot;

  friend bool operator<(const Entry& a, const Entry& b) { return a.key < b.key; }
};

/// How a full leaf is divided: entries[0, kept) stay, the others move; `separator` is the new
/// leaf's low bound.
template <class Key>
struct Division {
  std::array<Entry<Key>, kLeafPairs> entries;
  unsigned kept = 0;
  Key separator{};

  std::uint64_t kept_slots() const {
    std::uint64_t slots = 0;
    for (unsigned i = 0; i < kept; ++i) slots |= bit_of(entries[i].slot);
    return slots;
  }
};

/// The upper half moves. But in the last leaf, if `key` would be the index's largest, nothing does:
/// the new leaf stays empty for the key and its successors, so that ascending loads fill leaves
/// completely.
template <class Key>
void divide(Division<Key>& division, bool last_leaf, Key key) {
  auto& entries = division.entries;
  if (last_leaf) {
    const Key largest = std::max_element(entries.begin(), entries.end())->key;
    if (largest < key) {
      division.kept = kLeafPairs;
      division.separator = shortest_separator(largest, key);
      return;
    }
  }
  division.kept = kLeafPairs / 2;
  const auto middle = entries.begin() + division.kept;
  std::nth_element(entries.begin(), middle, entries.end());
  division.separator =
      shortest_separator(std::max_element(entries.begin(), middle)->key, middle->key);
}

}  // namespace

/// Splits the full, locked node, so that `key` finds room in it or in its new right neighbour.
template <class K, class V>
void Tree<K, V>::split(Node& node, Key key) {
  Leaf& left = *node.leaf;
  Division<Key> division;
  for (unsigned slot = 0; slot < kLeafPairs; ++slot) {
    division.entries[slot] = {keys_.view(pm::load(left.pairs[slot].key)), slot};
  }
  divide(division, NodeBounds::is_open(node.high.load(std::memory_order_relaxed)), key);

  alloc::Session session = pool().allocator().session();
  const pm::Offset offset = session.reserve(sizeof(Leaf));
  Leaf& right = *pool().template at<Leaf>(offset);
  const Word low = keys_.write(session, division.separator);
  // DRAM before the commit: when it runs out, the session gives its blocks back and nothing has
  // changed.
  Node* right_node =
      new_node(&right, division.separator, node.high.load(std::memory_order_relaxed));

  const unsigned moved = kLeafPairs - division.kept;
  pm().store(right.magic, kLeafMagic);
  pm().store(right.bitmap, first_slots(moved));
  pm().store(right.next, left.next);
  pm().store(right.low, low);
  for (unsigned i = 0; i < moved; ++i) {
    const unsigned from = division.entries[division.kept + i].slot;
    pm().copy(&right.pairs[i], &left.pairs[from], sizeof(Pair));
    right_node->add(i, Keys::hash16_of_word(left.pairs[from].key));
  }
  // Flushed only: log() fences before the new leaf can be linked.
  pm().flush(&right, offsetof(Leaf, pairs) + moved * sizeof(Pair));

  const std::uint64_t kept_slots = division.kept_slots();
  session.commit_when(left.next, ~std::uint64_t{0}, offset);
  session.redo(left.bitmap, kept_slots);
  session.log();
  // The commit: from here on the moved pairs belong to the new leaf.
  pm().publish(left.next, offset);
  pm().store(left.bitmap, kept_slots);
  // finish() fences; until then the record's redo stands in.
  pm().flush(&left.bitmap, sizeof left.bitmap);
  session.finish();
  blob_bytes_.add(keys_.footprint(low));

  link_right(node, right_node, kept_slots);
}

/// Makes the new right neighbour of the locked node reachable in DRAM. Readers of `node` retry,
/// since its lock is held.
template <class K, class V>
void Tree<K, V>::link_right(Node& node, Node* right, std::uint64_t kept_slots) {
  right->next.store(node.next.load(std::memory_order_relaxed), std::memory_order_relaxed);
  node.next.store(right, std::memory_order_release);
  node.high.store(NodeBounds::end_at(right->low), std::memory_order_release);
  node.bitmap.store(kept_slots, std::memory_order_relaxed);
  fill_filter(node);
  leaves_.add(1);
  try {
    top_.insert(NodeBounds::view(right->low), right);
  } catch (const std::bad_alloc&) {
    // The top layer may lag behind: the node is found by `next` of its left neighbour.
  }
}

/// Whether the locked node and its right neighbour should become one: they are sparse, or one of
/// them is empty.
template <class K, class V>
bool Tree<K, V>::mergeable(const Node& node) {
  const Node* next = node.next.load(std::memory_order_acquire);
  if (next == nullptr) return false;
  const unsigned count = node.count();
  const unsigned next_count = next->count();
  return count == 0 || next_count == 0 || count + next_count < kMergeBelow;
}

/// Merges after an erase from the node. Its right neighbour is looked at if it is sparse enough;
/// the left one at every eighth erase only, since finding it costs a search and locks are taken
/// from left to right.
template <class K, class V>
void Tree<K, V>::merge_around(LockedNode node) {
  constexpr unsigned kLeftEvery = 8;
  const unsigned count = node->count();
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

/// Takes a node that is about to be merged away out of the top layer; false if there was no memory
/// for it. The node is still found by `next` of its left neighbour.
template <class K, class V>
bool Tree<K, V>::hide(const Node& node) {
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
  if (!mergeable(node)) return;    // it grew before it was locked
  if (!hide(*right_node)) return;  // merging can wait

  Leaf& left = *node.leaf;
  Leaf& right = *right_node->leaf;
  const std::uint64_t old_slots = node.slots();
  alloc::Session session = pool().allocator().session();
  session.free(pool().offset(&right));
  Keys::free(session, right.low);
  for (std::uint64_t from = right_node->slots(); from != 0; from &= from - 1) {
    const unsigned source = static_cast<unsigned>(std::countr_zero(from));
    const unsigned target = static_cast<unsigned>(std::countr_one(node.slots()));
    // Stored by words: a reader that will retry may be looking at the slot.
    pm().store(left.pairs[target].key, right.pairs[source].key);
    pm().store(left.pairs[target].value, right.pairs[source].value);
    pm().flush(&left.pairs[target], sizeof(Pair));  // log() fences before their bits are set
    node.add(target, Keys::hash16_of_word(right.pairs[source].key));
  }

  blob_bytes_.add(-keys_.footprint(right.low));
  session.commit_when(left.next, ~std::uint64_t{0}, right.next);
  session.undo(left.bitmap, old_slots);
  session.log();
  // The bits must be durable before the commit gives their keys to the left leaf; a crash in
  // between takes them back (undo).
  pm().publish(left.bitmap, node.slots());  // its slots, durable since log()
  pm().publish(left.next, right.next);      // the commit
  session.finish();

  node.next.store(right_node->next.load(std::memory_order_relaxed), std::memory_order_release);
  node.high.store(right_node->high.load(std::memory_order_relaxed), std::memory_order_release);
  leaves_.add(-1);
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
