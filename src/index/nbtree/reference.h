// Roots, anchors and blocks at offsets that were read from PM, which is not trusted.
#pragma once

#include "index/nbtree/layout.h"
#include "pool/checked.h"

namespace perdix::detail::index::nbtree {

inline Root& checked_root(const pool::PoolCore& pool, pm::Offset offset) {
  return pool::checked_by_magic<Root>(pool, offset, "its root", kRootMagic);
}

inline Anchor& checked_anchor(const pool::PoolCore& pool, pm::Offset offset) {
  return pool::checked<Anchor>(pool, offset, "an anchor", [](const Anchor&) { return true; });
}

inline Block& checked_block(const pool::PoolCore& pool, const Anchor& anchor) {
  const pm::Offset offset = pm::load(anchor.block);
  return pool::checked<Block>(pool, offset, "a block", [&](const Block& block) {
    const std::uint64_t meta = pm::load(block.meta);
    return Meta::valid(meta) && pool.contains(offset, block_bytes(Meta::unpack(meta).capacity));
  });
}

inline unsigned capacity_of(const Block& block) {
  return Meta::unpack(pm::load(block.meta)).capacity;
}

}  // namespace perdix::detail::index::nbtree
