// Opening an index: a list that is new gets its head, of one that exists the head is looked at.
// The pool has resolved the allocator's records before, so the invariants of layout.h hold. What a
// crash has left unfinished (a node that is not in all of its levels) is right as it is.
#pragma once

#include <cstdint>

#include "alloc/session.h"
#include "index/common/retry.h"
#include "index/skiplist/node.h"

namespace perdix::detail::index::skiplist {

/// Gives a new list its head. The root word is the commit.
inline void create(pool::PoolCore& pool, std::uint64_t& root) {
  constexpr std::uint64_t kBytes = node_bytes(kMaxHeight);
  alloc::Session session = pool.allocator().session();
  const pm::Offset offset = session.reserve(kBytes);
  Node& head = *pool.at<Node>(offset);
  pool.pm().zero(&head, kBytes);
  pool.pm().store(head.meta, Meta{.head = true, .height = kMaxHeight}.pack());
  pool.pm().flush(&head, kBytes);  // durable before the commit, by its fence
  session.commit(pm::set_word(root, offset));
}

/// The head of a list, which is created if there is none. Throws corrupt, out_of_space.
inline Node& open_head(pool::PoolCore& pool, std::uint64_t& root) {
  if (pm::load(root) == pm::kNull) retry_when_full(pool, [&] { create(pool, root); });
  return checked_head(pool, pm::load(root));
}

}  // namespace perdix::detail::index::skiplist
