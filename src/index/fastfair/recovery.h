// What happens on open: a new tree gets its first leaf, an existing tree is inspected once, and a
// tree that is to have write buffers gets a head.
// The pool has resolved the allocator's log before, so the invariants of layout.h hold. What a
// crash has left unfinished (an interrupted shift, a node without an entry above) is valid as it
// is, and the next writer that meets it completes it.
#pragma once

#include <chrono>

#include "alloc/session.h"
#include "index/common/retry.h"
#include "index/fastfair/buffers.h"
#include "index/fastfair/fastfair.h"

namespace perdix::detail::index::fastfair {

inline bool wants_buffers(const FastFairOptions& options) {
  return options.technique != Technique::none && options.dram_budget != 0;
}

inline void check_fanout([[maybe_unused]] unsigned fanout) {
  assert(fanout >= 4 && fanout <= kCapacity);
}

template <class K>
WordTree<K>::WordTree(pool::IndexHandle handle, const FastFairOptions& options)
    : WordTree(handle.pool(), handle.root(), handle.info().value_kind, kCapacity, Latches::kBits,
               options) {
  handle_ = std::move(handle);
}

template <class K>
WordTree<K>::WordTree(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind, unsigned fanout,
                      unsigned latch_bits, const FastFairOptions& options)
    : pool_(pool),
      root_(root_word(pool, root, wants_buffers(options))),
      head_(head_at(pool, pm::load(root))),
      fanout_(fanout),
      keys_(pool),
      codec_(pool, value_kind),
      latches_(latch_bits) {
  check_fanout(fanout);
  const auto start = std::chrono::steady_clock::now();
  if (pm::load(root_) == pm::kNull) retry_when_full(pool_, [&] { create(); });
  node_at(pm::load(root_));
  if (path_budget(options) != 0)
    path_ = std::make_unique<Path>(pool_.reclaimer(), path_budget(options), LowOf{keys_});
  open_buffers(options);  // its thread goes by the path
  if (path_ != nullptr) open_path(options);
  if (buffers_ != nullptr) entry_.emplace(pool_.open_indexes(), *this);
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

}  // namespace perdix::detail::index::fastfair
