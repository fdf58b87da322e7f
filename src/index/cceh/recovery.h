// What happens on open: a new table gets its root block, an existing table is inspected once. The
// pool has resolved the allocator's records before, so the invariants of layout.h hold. What a
// crash has left unfinished (pending or stale entries of the directory) is valid as it is, and the
// next thread that meets it completes it.
#pragma once

#include <chrono>

#include "index/cceh/buffers.h"
#include "index/cceh/cceh.h"
#include "index/common/retry.h"

namespace perdix::detail::index::cceh {

template <class K>
WordTable<K>::WordTable(pool::IndexHandle handle, Kind value_kind, const Shape& shape,
                        const IndexOptions& options)
    : handle_(std::move(handle)),
      pool_(handle_.pool()),
      root_(*retry_when_full(pool_, [&] { return &open_root(pool_, handle_.root(), shape); })),
      shape_(shape_of(pool_, root_)),
      lazy_depth_(std::min(shape_.lazy_depth, KnownHash<K>::kBits)),
      keys_(pool_),
      codec_(pool_, value_kind),
      latches_(Latches::kBits),
      directory_(pool_, root_, shape_),
      records_(pool_, keys_, codec_) {
  const auto start = std::chrono::steady_clock::now();
  {
    const epoch::Guard guard;
    locate({0});
  }
  open_buffers(options);
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  entry_.emplace(pool_.open_indexes(), *this);
}

}  // namespace perdix::detail::index::cceh
