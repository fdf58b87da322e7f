// What happens on open: a list that is new gets its head, of one that exists the head is looked at.
// The pool has resolved the allocator's records before, so the invariants of layout.h hold. What a
// crash has left unfinished (a node that is not in all of its levels) is right as it is.
#pragma once

#include <chrono>

#include "index/common/retry.h"
#include "index/skiplist/buffers.h"
#include "index/skiplist/skiplist.h"

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

template <class K>
WordList<K>::WordList(pool::IndexHandle handle, const SkipListOptions& options, std::uint64_t seed)
    : handle_(std::move(handle)),
      pool_(handle_.pool()),
      head_(open_head(pool_, handle_.root())),
      keys_(pool_),
      codec_(pool_, handle_.info().value_kind),
      latches_(Latches::kBits),
      hash_(seed),
      levels_(0) {
  const auto start = std::chrono::steady_clock::now();
  levels_.store(levels_in_use(head_), std::memory_order_relaxed);
  if (path_budget(options) != 0)
    path_ = std::make_unique<NodePath>(pool_.reclaimer(), path_budget(options), KeyOf{keys_});
  open_buffers(options);  // its thread goes by the path
  if (path_ != nullptr) open_path(options);
  if (buffers_ != nullptr) entry_.emplace(pool_.open_indexes(), *this);
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace perdix::detail::index::skiplist
