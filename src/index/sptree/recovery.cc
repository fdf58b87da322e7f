// What happens on open: an index that is new gets its first leaf; one that exists gets its DRAM
// layers back from the list of leaves (sptree.txt §4.6). The pool has resolved the allocator's log
// before, so the invariants of layout.h hold and nothing in PM needs repair here. Opening never
// writes to PM, except for a new index, and so a crash during it changes nothing.
#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <new>

#include "alloc/session.h"
#include "index/sptree/sptree.h"

namespace perdix::index::sptree {
namespace {

/// How many leaves recovery has asked memory for before it needs them: enough to hide the latency
/// of one.
constexpr std::size_t kLeavesAhead = 8;

void prefetch_pairs(const Leaf& leaf) {
  for (unsigned i = 0; i < kLeafPairs; i += pm::kLineSize / sizeof(Pair)) {
    __builtin_prefetch(&leaf.pairs[i]);
  }
}

/// The leaf at an offset that was read from PM.
Leaf* checked_leaf(const pool::PoolCore& pool, pm::Offset offset) {
  if (offset % kLeafAlignment == 0 && pool.contains(offset, sizeof(Leaf))) {
    Leaf* leaf = pool.at<Leaf>(offset);
    if (pm::load(leaf->magic) == kLeafMagic) return leaf;
  }
  throw Error(
      Errc::corrupt,
      fmt::format(
          "{}: an index links to offset {:#x}, where no leaf is; restore the pool from a copy",
          pool.path().string(), offset));
}

}  // namespace

template <class K, class V>
Tree<K, V>::Tree(pool::IndexHandle handle)
    : handle_(std::move(handle)),
      keys_(pool()),
      values_(pool()),
      drain_{pool().reclaimer()},
      top_(art::DramMemory(arena_, pool().reclaimer())) {
  const auto start = std::chrono::steady_clock::now();
  if (pm::load(handle_.root()) == pm::kNull) create();
  recover();
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Gives a new index its first leaf, empty and responsible for all keys. The root word is the
/// commit.
template <class K, class V>
void Tree<K, V>::create() {
  alloc::Session session = pool().allocator().session();
  const pm::Offset offset = session.reserve(sizeof(Leaf));
  Leaf& leaf = *pool().template at<Leaf>(offset);
  pm().store(leaf.magic, kLeafMagic);
  pm().store(leaf.bitmap, 0);
  pm().store(leaf.next, pm::kNull);
  pm().store(leaf.low, 0);
  pm().flush(&leaf, offsetof(Leaf, pairs));  // log() fences before the leaf can be linked
  session.commit_when(handle_.root(), ~std::uint64_t{0}, offset);
  session.log();
  pm().store(handle_.root(), offset);          // the commit
  pm().flush(&handle_.root(), sizeof offset);  // finish() fences: nothing is freed (rule R3)
  session.finish();
}

template <class K, class V>
void Tree<K, V>::recover() {
  std::deque<Leaf*> ahead;
  pm::Offset next = pm::load(handle_.root());
  Node* last = nullptr;
  while (next != pm::kNull || !ahead.empty()) {
    while (next != pm::kNull && ahead.size() < kLeavesAhead) {
      ahead.push_back(checked_leaf(pool(), next));
      prefetch_pairs(*ahead.back());
      next = pm::load(ahead.back()->next);
    }
    last = append_recovered(last, ahead.front());
    ahead.pop_front();
  }
}

/// Makes the middle node of the leaf that follows `last` in the list; nullptr before the first.
/// Returns it.
template <class K, class V>
auto Tree<K, V>::append_recovered(Node* last, Leaf* leaf) -> Node* {
  const Key low = keys_.view(pm::load(leaf->low));
  // Ascending bounds (L2) also mean that a damaged list can't run in a circle.
  if (last == nullptr ? low != NodeBounds::view(NodeBounds::least())
                      : !(NodeBounds::view(last->low) < low)) {
    throw Error(Errc::corrupt,
                fmt::format("{}: the leaves of index '{}' are out of order at offset {:#x}; "
                            "restore the pool from a copy",
                            pool().path().string(), handle_.name(), pool().offset(leaf)));
  }
  Node* node = new_node(leaf, low, NodeBounds::open());
  node->bitmap.store(pm::load(leaf->bitmap), std::memory_order_relaxed);
  fill_filter(*node);
  count_recovered(*node);
  if (last == nullptr) {
    head_ = node;
  } else {
    last->high.store(NodeBounds::end_at(node->low), std::memory_order_relaxed);
    last->next.store(node, std::memory_order_release);
    top_.insert(low, node);
  }
  return node;
}

/// Adds a recovered node to the statistics.
template <class K, class V>
void Tree<K, V>::count_recovered(const Node& node) {
  pairs_.add(node.count());
  leaves_.add(1);
  if constexpr (!Keys::kInline || !Values::kInline) {
    for (std::uint64_t left = node.slots(); left != 0; left &= left - 1) {
      count_blobs(node.leaf->pairs[std::countr_zero(left)], +1);
    }
    blob_bytes_.add(keys_.footprint(node.leaf->low));
  }
}

template <class K, class V>
auto Tree<K, V>::new_node(Leaf* leaf, Key low, typename NodeBounds::High high) -> Node* {
  const auto bound = NodeBounds::make(arena_, low);
  try {
    return new (arena_.allocate(sizeof(Node))) Node(leaf, bound, high);
  } catch (const std::bad_alloc&) {
    NodeBounds::release(arena_, bound);
    throw;
  }
}

/// Computes fingerprints and filter anew from the pairs in PM (M2).
template <class K, class V>
void Tree<K, V>::fill_filter(Node& node) const {
  node.bloom.clear();
  for (std::uint64_t left = node.slots(); left != 0; left &= left - 1) {
    const unsigned slot = static_cast<unsigned>(std::countr_zero(left));
    node.add(slot, Keys::hash16_of_word(pm::load(node.leaf->pairs[slot].key)));
  }
}

/// Gives an unlinked node's memory back after a grace period.
template <class K, class V>
void Tree<K, V>::retire(Node* node) {
  const auto dispose = [](void* object, void* arena) {
    auto* retired = static_cast<Node*>(object);
    auto& owner = *static_cast<util::Arena*>(arena);
    NodeBounds::release(owner, retired->low);
    owner.release(retired, sizeof(Node));
  };
  pool().reclaimer().retire(node, dispose, &arena_);
}

/// Pairs first, one commit each, then the leaf: so every crash point leaves a list that this can go
/// on with.
template <class K, class V>
void destroy(pool::PoolCore& pool, std::uint64_t& root) {
  const auto& pm = pool.pm();
  for (pm::Offset offset = pm::load(root); offset != pm::kNull; offset = pm::load(root)) {
    Leaf& leaf = *checked_leaf(pool, offset);
    if constexpr (!Words<K>::kInline || !Words<V>::kInline) {
      for (std::uint64_t left = pm::load(leaf.bitmap); left != 0; left &= left - 1) {
        const Pair& pair = leaf.pairs[std::countr_zero(left)];
        alloc::Session session = pool.allocator().session();
        Words<K>::free(session, pm::load(pair.key));
        Words<V>::free(session, pm::load(pair.value));
        session.commit_when(leaf.bitmap, left & -left, 0);
        session.log();
        pm.publish(leaf.bitmap, left & (left - 1));  // the commit
        session.finish();
      }
    }
    alloc::Session session = pool.allocator().session();
    session.free(offset);
    Words<K>::free(session, pm::load(leaf.low));
    const pm::Offset next = pm::load(leaf.next);
    session.commit_when(root, ~std::uint64_t{0}, next);
    session.log();
    pm.publish(root, next);  // the commit
    session.finish();
  }
}

template Tree<std::uint64_t, std::uint64_t>::Tree(pool::IndexHandle);
template auto Tree<std::uint64_t, std::uint64_t>::new_node(Leaf*, Key, NodeBounds::High) -> Node*;
template void Tree<std::uint64_t, std::uint64_t>::fill_filter(Node&) const;
template void Tree<std::uint64_t, std::uint64_t>::retire(Node*);
template void destroy<std::uint64_t, std::uint64_t>(pool::PoolCore&, std::uint64_t&);
template Tree<std::uint64_t, std::string>::Tree(pool::IndexHandle);
template auto Tree<std::uint64_t, std::string>::new_node(Leaf*, Key, NodeBounds::High) -> Node*;
template void Tree<std::uint64_t, std::string>::fill_filter(Node&) const;
template void Tree<std::uint64_t, std::string>::retire(Node*);
template void destroy<std::uint64_t, std::string>(pool::PoolCore&, std::uint64_t&);
template Tree<std::string, std::uint64_t>::Tree(pool::IndexHandle);
template auto Tree<std::string, std::uint64_t>::new_node(Leaf*, Key, NodeBounds::High) -> Node*;
template void Tree<std::string, std::uint64_t>::fill_filter(Node&) const;
template void Tree<std::string, std::uint64_t>::retire(Node*);
template void destroy<std::string, std::uint64_t>(pool::PoolCore&, std::uint64_t&);
template Tree<std::string, std::string>::Tree(pool::IndexHandle);
template auto Tree<std::string, std::string>::new_node(Leaf*, Key, NodeBounds::High) -> Node*;
template void Tree<std::string, std::string>::fill_filter(Node&) const;
template void Tree<std::string, std::string>::retire(Node*);
template void destroy<std::string, std::string>(pool::PoolCore&, std::uint64_t&);

}  // namespace perdix::index::sptree
