// What happens on open: a tree that is new gets its first leaf, one that exists is looked at once.
// The pool has resolved the allocator's log before, so the invariants of layout.h hold. What a
// crash has left unfinished (an interrupted shift, a node without an entry above) is right as it
// is, and is put in order by the next writer that comes by.
#pragma once

#include <chrono>

#include "alloc/session.h"
#include "index/common/retry.h"
#include "index/fastfair/fastfair.h"

namespace perdix::detail::index::fastfair {
inline void check_fanout([[maybe_unused]] unsigned fanout) {
  assert(fanout >= 4 && fanout <= kCapacity);
}

template <class K>
WordTree<K>::WordTree(pool::IndexHandle handle, Kind value_kind)
    : WordTree(handle.pool(), handle.root(), value_kind, kCapacity, Latches::kBits) {
  handle_ = std::move(handle);
}

template <class K>
WordTree<K>::WordTree(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind, unsigned fanout,
                      unsigned latch_bits)
    : pool_(pool),
      root_(root),
      fanout_(fanout),
      keys_(pool),
      codec_(pool, value_kind),
      latches_(latch_bits) {
  check_fanout(fanout);
  const auto start = std::chrono::steady_clock::now();
  if (pm::load(root_) == pm::kNull) retry_when_full(pool_, [&] { create(); });
  node_at(pm::load(root_));
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Gives a new tree its first leaf, empty and responsible for all keys. The root word is the
/// commit.
template <class K>
void WordTree<K>::create() {
  alloc::Session session = pool_.allocator().session();
  const pm::Offset offset = session.reserve(sizeof(Node));
  Node& leaf = *pool_.template at<Node>(offset);
  pm().store(leaf.meta, Meta{0, 0}.pack());
  pm().store(leaf.next, pm::kNull);
  pm().store(leaf.low, 0);
  pm().store(leaf.leftmost, pm::kNull);
  pm().flush(&leaf, offsetof(Node, entries));  // log() fences before the leaf can be linked
  session.commit_when(root_, ~std::uint64_t{0}, offset);
  session.log();
  pm().store(root_, offset);          // the commit
  pm().flush(&root_, sizeof offset);  // finish() fences: nothing is freed (rule R3)
  session.finish();
}

/// Frees a block with the store that makes it unreachable.
inline void free_by(pool::PoolCore& pool, std::uint64_t& word, std::uint64_t value,
                    alloc::Session session) {
  session.commit_when(word, ~std::uint64_t{0}, value);
  session.log();
  pool.pm().publish(word, value);  // the commit
  session.finish();
}

/// Frees the root's level but for its first node, which is then freed with the root word leading
/// one level down.
template <class K>
void free_inner_level(pool::PoolCore& pool, std::uint64_t& root, Node& first) {
  const Words<K> keys(pool);
  while (Node* second = right_neighbour<K>(pool, keys, first)) {
    alloc::Session session = pool.allocator().session();
    session.free(pool.offset(second));
    free_by(pool, first.next, pm::load(second->next), std::move(session));
  }
  const pm::Offset below = pm::load(first.leftmost);
  checked_child(pool, first, below);
  alloc::Session session = pool.allocator().session();
  session.free(pool.offset(&first));
  free_by(pool, root, below, std::move(session));
}

/// Frees what the leaf's entries own, from the last one on, one commit each.
template <class K>
void free_pairs(pool::PoolCore& pool, const WordCodec& values, Node& leaf) {
  mend(pool.pm(), leaf);  // what a copy refers to would be freed twice
  for (unsigned left = meta_of(leaf).count; left > 0; --left) {
    const Entry entry = load_entry(leaf, left - 1);
    alloc::Session session = pool.allocator().session();
    Words<K>::free(session, entry.key);
    values.free(session, entry.value);
    free_by(pool, leaf.meta, meta_with(leaf, left - 1), std::move(session));
  }
}

/// Level by level from the top, then the leaves from the first one on: so every crash point leaves
/// something that this can go on with.
template <class K>
void WordTree<K>::destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind) {
  const WordCodec values(pool, value_kind);
  for (pm::Offset offset = pm::load(root); offset != pm::kNull; offset = pm::load(root)) {
    Node& node = checked_node(pool, offset);
    if (meta_of(node).level > 0) {
      free_inner_level<K>(pool, root, node);
      continue;
    }
    if (!Words<K>::kInline || !values.is_inline()) free_pairs<K>(pool, values, node);
    const Node* next = right_neighbour<K>(pool, Words<K>(pool), node);
    alloc::Session session = pool.allocator().session();
    session.free(offset);
    Words<K>::free(session, pm::load(node.low));
    free_by(pool, root, next == nullptr ? pm::kNull : pool.offset(next), std::move(session));
  }
}

}  // namespace perdix::detail::index::fastfair
