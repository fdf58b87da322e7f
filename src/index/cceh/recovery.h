// What happens on open: a new table gets its root block, directory and first segment; of an
// existing table the root block and one entry of the directory are read. The pool has resolved the
// allocator's records before, so the invariants of layout.h hold. A crash may have left pending or
// stale entries in the directory. They are valid (H3), and the next thread that meets one completes
// the change.
#pragma once

#include <chrono>

#include "index/cceh/buffers.h"
#include "index/cceh/cceh.h"
#include "index/common/retry.h"

namespace perdix::detail::index::cceh {

template <class K>
WordTable<K>::WordTable(pool::IndexHandle handle, const Shape& shape, const CcehOptions& options)
    : handle_(std::move(handle)),
      pool_(handle_.pool()),
      root_(*retry_when_full(pool_, [&] { return &open_root(pool_, handle_.root(), shape); })),
      shape_(shape_of(pool_, root_)),
      hash_(shape_.seed),
      lazy_depth_(std::min(shape_.lazy_depth, KnownHash<K>::kBits)),
      keys_(pool_),
      codec_(pool_, handle_.info().value_kind),
      latches_(Latches::kBits),
      directory_(pool_, root_, shape_) {
  const auto start = std::chrono::steady_clock::now();
  {
    const epoch::Guard guard;
    locate({0});  // throws corrupt here, not at the first use, if the directory is damaged
  }
  open_buffers(options);
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  entry_.emplace(pool_.open_indexes(), *this);
}

}  // namespace perdix::detail::index::cceh
