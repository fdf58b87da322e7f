// What an Elf keeps in PM, and nothing else. docs/format/elf.md describes it.
//
// Invariants, verified by check.cc:
//   L1. The root of the index leads to a Root, whose `current` names one of its two table words.
//       That table counts. The other word is 0, or leads to a table that an unfinished build left
//       (its generation is higher) or that was replaced (lower); its blocks are freed by the next
//       operation that needs the word.
//   L2. Positions count 4-byte words over all slots of a table. Slot s covers the positions
//       [s << slot_shift, (s + 1) << slot_shift). A block covers one slot, or several if a single
//       node needs them: then its offset stands in the first one's word, and the others are 0.
//   L3. Nodes lie in preorder: a node begins behind all nodes that a traversal visits before it.
//       No node crosses the end of its block.
//   L4. The values of a list ascend strictly, and each of its entries leads to at least one row.
//   L5. Each TID below `tids` occurs exactly once in the lists, or its bit in `dead` is set, or
//       both. While `erased` is 0 only one of both.
//   L6. Segments are a chain. Only the last one may be empty or have room. The first row of a
//       segment has the TID behind the last row of the segment before; the first row of the first
//       segment has the TID `tids`.
//   L7. Root, tables, segments, and what the words of a table lead to, are one allocated block
//   each,
//       large enough for what it holds.
//
// Nodes, in 4-byte words (node.h has the codes):
//   list       count | wide << 31, values[count], then pointers[count] of one word each, or two if
//              wide
//   MonoList   the values of all further dimensions, then a TID; or the number of TIDs, then those,
//              ascending
//   TIDs       the number of TIDs, then those, ascending
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "pm/offset.h"

namespace perdix::detail::index::elf {

/// Magic numbers, which begin the blocks of each kind.
inline constexpr std::uint64_t kRootMagic = 0x31544f4f52464c45;     // "ELFROOT1"
inline constexpr std::uint64_t kTableMagic = 0x3142415446464c45;    // "ELFFTAB1"
inline constexpr std::uint64_t kSegmentMagic = 0x3147455346464c45;  // "ELFFSEG1"

/// Where the index's root word leads. All but `current` and `tables` is written once, before the
/// root word.
struct Root {
  std::uint64_t magic;
  std::uint32_t dimensions;
  std::uint32_t slot_shift;    ///< a slot covers 1 << slot_shift words
  std::uint32_t segment_rows;  ///< rows of a segment
  std::uint32_t zero;
  std::uint64_t current;                ///< 0 or 1: the commit word of build and compact
  std::array<std::uint64_t, 2> tables;  ///< offsets of TableLayout
  std::array<std::uint64_t, 2> reserved;
};
static_assert(offsetof(Root, current) == 24 && sizeof(Root) == 64);

/// A table: the result of a build, and the rows inserted since. Slots follow behind it: a word for
/// each, the offset of the block that begins there, or 0. Written before the table counts, but for
/// `segments` and `erased`.
struct TableLayout {
  std::uint64_t magic;
  std::uint64_t generation;  ///< one more than that of the table before
  std::uint64_t segments;    ///< the first segment of inserted rows; 0: none
  std::uint64_t tids;        ///< inserted rows have TIDs from here on
  std::uint64_t rows;        ///< in the lists, when they were built
  std::uint64_t erased;      ///< 1: bits of `dead` were set since
  std::uint64_t dead;  ///< block: a bit for each TID below `tids`, set if there is no such row
  std::uint64_t first_list;  ///< block: FirstList; 0: there are no rows
  std::uint64_t slots;       ///< words behind this
};
static_assert(offsetof(TableLayout, slots) == 64 && sizeof(TableLayout) == 72);

/// The list of the first dimension. Dense: behind it is a Ref for each value from `least` on, 0 for
/// values that do not occur. Else Refs, then values of 4 bytes each, ascending.
struct FirstList {
  std::uint32_t count;  ///< of Refs
  std::uint32_t dense;  ///< 1 or 0
  std::uint64_t least;  ///< the first value; 0 unless dense
};
static_assert(sizeof(FirstList) == 16);

/// A run of inserted rows. Behind it: the bits of `dead`, in whole 8-byte words, then the rows of
/// `dimensions` values of 4 bytes each. A row is written, then `count` commits it.
struct SegmentLayout {
  std::uint64_t magic;
  std::uint64_t next;   ///< the segment behind it; 0: none
  std::uint64_t first;  ///< TID of the first row
  std::uint64_t count;  ///< rows
};
static_assert(sizeof(SegmentLayout) == 32);

}  // namespace perdix::detail::index::elf
