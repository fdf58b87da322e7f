// What an opening finds or makes: the header of an index (T1), together with the plug-in's object
// behind it, and what an opening requires of it.
#pragma once

#include <cstdint>

#include <perdix/types.h>

#include "index/tips/layout.h"
#include "index/tips/plugin.h"
#include "pm/offset.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

/// Finds the header below the root of an index, which it creates if there is none, with logs of
/// that size; 0: of the size that fits the pool and the machine. Throws corrupt if the header is
/// damaged, wrong_engine if another plug-in has made the object.
Header& open_header(pool::PoolCore& pool, std::uint64_t& root, const Plugin& plugin,
                    std::uint64_t ring_bytes);

/// Finds a header without its plug-in. Throws corrupt unless there is one.
Header& header_at(pool::PoolCore& pool, pm::Offset offset);

/// The object of the plug-in, which lies behind the header.
inline void* object_behind(Header& header) { return &header + 1; }

/// Finds the plug-in whose object lies behind a header. Throws unsupported if the pool was opened
/// without it, corrupt if there is none of that name.
const Plugin& plugin_behind(pool::PoolCore& pool, const Header& header, Kind keys);

}  // namespace perdix::detail::index::tips
