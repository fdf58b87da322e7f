// What happens on open: a new table gets its root block, directory and first segment; of an
// existing table the root block and one entry of the directory are read. The pool has resolved the
// allocator's records before, so the invariants of layout.h hold. A crash may have left pending or
// stale entries in the directory. They are valid (H3), and the next thread that meets one completes
// the change.
//
// What was read from PM is not trusted, and checked here.
#pragma once

#include <cstdint>
#include <span>

#include <perdix/cceh.h>

#include "index/cceh/layout.h"
#include "index/cceh/shape.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::cceh {

/// What an index is created with. The options must be in their ranges.
Shape shape_from(const CcehOptions& options);

/// The root block of an index, which is created if there is none. Throws corrupt, out_of_space;
/// older_format if an earlier release made it, whose indexes can only be dropped.
Root& open_root(pool::PoolCore& pool, std::uint64_t& root, const Shape& shape);
/// The root block at an offset, of an earlier format, too. Throws corrupt.
Root& checked_root(pool::PoolCore& pool, pm::Offset offset);
Shape shape_of(const pool::PoolCore& pool, const Root& root);

/// The overflow of a segment. Throws corrupt.
std::span<Pair> checked_overflow(const pool::PoolCore& pool, Reference overflow);

}  // namespace perdix::detail::index::cceh
