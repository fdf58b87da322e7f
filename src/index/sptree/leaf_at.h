// Leaves and root blocks at offsets that were read from PM, which is not trusted.
#pragma once

#include <fmt/format.h>
#include <perdix/error.h>

#include "index/sptree/layout.h"
#include "pm/access.h"
#include "pool/pool_core.h"

namespace perdix::index::sptree {

/// The block of that type at the offset. Throws corrupt if none is there.
template <class Block>
Block& checked(const pool::PoolCore& pool, pm::Offset offset, std::uint64_t alignment,
               std::uint64_t magic, const char* name) {
  if (offset % alignment == 0 && pool.contains(offset, sizeof(Block))) {
    Block& block = *pool.at<Block>(offset);
    if (pm::load(block.magic) == magic) return block;
  }
  throw Error(Errc::corrupt, fmt::format("{}: an index links to offset {:#x}, where no {} is; "
                                         "restore the pool from a copy",
                                         pool.path().string(), offset, name));
}

inline Leaf& leaf_at(const pool::PoolCore& pool, pm::Offset offset) {
  return checked<Leaf>(pool, offset, kLeafAlignment, kLeafMagic, "leaf");
}

inline Root& root_at(const pool::PoolCore& pool, pm::Offset offset) {
  return checked<Root>(pool, offset, alignof(Root), kRootMagic, "root block");
}

}  // namespace perdix::index::sptree
