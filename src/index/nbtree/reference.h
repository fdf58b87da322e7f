// Roots, anchors and blocks at offsets that were read from PM, which is not trusted.
#pragma once

#include <fmt/format.h>
#include <perdix/error.h>

#include "index/nbtree/layout.h"
#include "pm/access.h"
#include "pool/pool_core.h"

namespace perdix::index::nbtree {

[[noreturn]] inline void throw_corrupt(const pool::PoolCore& pool, const char* what,
                                       pm::Offset offset) {
  throw Error(Errc::corrupt,
              fmt::format("{}: an index has {} at offset {:#x}, where none is that could be "
                          "there; restore the pool from a copy",
                          pool.path().string(), what, offset));
}

inline Root& checked_root(const pool::PoolCore& pool, pm::Offset offset) {
  if (offset % alignof(Root) == 0 && pool.contains(offset, sizeof(Root)) &&
      pm::load(pool.at<Root>(offset)->magic) == kRootMagic) {
    return *pool.at<Root>(offset);
  }
  throw_corrupt(pool, "its root", offset);
}

inline Anchor& checked_anchor(const pool::PoolCore& pool, pm::Offset offset) {
  if (offset % alignof(Anchor) == 0 && pool.contains(offset, sizeof(Anchor)))
    return *pool.at<Anchor>(offset);
  throw_corrupt(pool, "an anchor", offset);
}

inline Block& checked_block(const pool::PoolCore& pool, const Anchor& anchor) {
  const pm::Offset offset = pm::load(anchor.block);
  if (offset % alignof(Block) == 0 && pool.contains(offset, sizeof(Block))) {
    Block& block = *pool.at<Block>(offset);
    const std::uint64_t meta = pm::load(block.meta);
    if (Meta::valid(meta) && pool.contains(offset, block_bytes(Meta::unpack(meta).capacity)))
      return block;
  }
  throw_corrupt(pool, "a block", offset);
}

inline unsigned capacity_of(const Block& block) {
  return Meta::unpack(pm::load(block.meta)).capacity;
}

}  // namespace perdix::index::nbtree
