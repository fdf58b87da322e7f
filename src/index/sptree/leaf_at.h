// Leaves and root blocks at offsets that were read from PM, which is not trusted. All throw
// Errc::corrupt.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include "index/sptree/layout.h"
#include "pool/checked.h"

namespace perdix::detail::index::sptree {

inline Leaf& leaf_at(const pool::PoolCore& pool, pm::Offset offset) {
  return pool::checked_by_magic<Leaf>(pool, offset, "a leaf", kLeafMagic, kLeafAlignment);
}

inline Root& root_at(const pool::PoolCore& pool, pm::Offset offset) {
  return pool::checked_by_magic<Root>(pool, offset, "its root", kRootMagic);
}

/// For a leaf that is one, but not as layout.h says. `finding` is a predicate: "begins where
/// another does".
[[noreturn]] inline void throw_bad_leaf(const pool::PoolCore& pool, pm::Offset leaf,
                                        std::string_view finding) {
  pool::throw_damaged(pool, fmt::format("the leaf of an index at offset {:#x} {}", leaf, finding));
}

}  // namespace perdix::detail::index::sptree
