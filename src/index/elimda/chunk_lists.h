// The lists of the backup log's chunks in PM: one for each *region*, a range of hashes. So what a
// cold segment has in the backup log is found in a few chunks, however many there are.
//
// The region with the name 2^d + i has the hashes whose first d bits are i: the name 1 has all of
// them. A region of a greater depth lies in those of smaller depths, which keep the chunks that
// they have got. At depth 0 the root's word is the list of region 1. When a list has got long the
// depth grows by one: a table of twice as many lists replaces the one before.
//
// Thread-safety: the caller has a lock for all that changes, and for head().
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "index/elimda/layout.h"
#include "index/elimda/shape.h"
#include "pm/access.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::elimda {

using Region = std::uint32_t;

class ChunkLists {
 public:
  static constexpr unsigned kMaxDepth = 8;
  /// All names are below this.
  static constexpr Region kRegions = 2u << kMaxDepth;

  ChunkLists(pool::PoolCore& pool, Root& root) : pool_(pool), root_(root) {}

  unsigned depth() const { return Reference::unpack(pm::load(root_.chunks)).depth; }
  static Region region_of(KeyHash hash, unsigned depth) {
    return static_cast<Region>(1u << depth | hash.prefix(depth));
  }
  static unsigned depth_of(Region region) {
    return static_cast<unsigned>(std::bit_width(region)) - 1;
  }

  /// Calls visit(region) for those of all depths that have hashes of a range, from the smallest
  /// depth on. `last` is the last hash of the range.
  template <class Visit>
  void for_each_region(KeyHash first, KeyHash last, unsigned max_depth, Visit visit) const {
    const unsigned end = std::min(depth(), max_depth);
    for (unsigned d = 0; d <= end; ++d) {
      for (Region region = region_of(first, d); region <= region_of(last, d); ++region)
        visit(region);
    }
  }

  /// The word that leads to the newest chunk of a region, the commit word when it gets another. The
  /// depth is at least the region's. Throws corrupt.
  std::uint64_t& head(Region region) const;

  /// Adds one to the depth. Throws corrupt, out_of_space.
  void deepen() const;

  /// The table of lists; kNull at depth 0. Throws corrupt.
  pm::Offset table() const;
  static std::uint64_t table_bytes(unsigned depth) { return std::uint64_t{16} << depth; }

 private:
  pool::PoolCore& pool_;
  Root& root_;
};

}  // namespace perdix::detail::index::elimda
