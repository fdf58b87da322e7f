// The header of a log: making one, and finding one that may be damaged.
#pragma once

#include "pool/pool_core.h"
#include "wal/layout.h"

namespace perdix::detail::wal {

/// Fills a header with that of an empty log, flushed and not fenced.
void write_header(pool::PoolCore& pool, Header& header, std::uint64_t seed);

/// The header at an offset that was read from PM. Throws Errc::corrupt if none is there.
Header& checked_header(pool::PoolCore& pool, pm::Offset offset);

}  // namespace perdix::detail::wal
