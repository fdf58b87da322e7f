// Leaves and root blocks at offsets that were read from PM, which is not trusted.
#pragma once

#include "index/sptree/layout.h"
#include "pool/checked.h"

namespace perdix::detail::index::sptree {

inline Leaf& leaf_at(const pool::PoolCore& pool, pm::Offset offset) {
  return pool::checked_by_magic<Leaf>(pool, offset, "a leaf", kLeafMagic, kLeafAlignment);
}

inline Root& root_at(const pool::PoolCore& pool, pm::Offset offset) {
  return pool::checked_by_magic<Root>(pool, offset, "its root", kRootMagic);
}

}  // namespace perdix::detail::index::sptree
