// Recovery of the allocator's structures when a pool is opened: operations that a crash
// interrupted are completed or undone.
#pragma once

#include <vector>

#include "alloc/chunks.h"
#include "alloc/inspector.h"
#include "alloc/marks.h"
#include "alloc/space.h"
#include "pm/file.h"

namespace perdix::detail::alloc {

/// Reads all that recover() relies on, and changes nothing: what is damaged is found before the
/// pool is touched. Returns the chunks that are in use, as ranges that don't touch each other.
/// Throws as recover().
std::vector<pm::FileRange> validate(Space& space);

/// Opens `chunks`, resolves the record of every lane, and empties every ring into the bitmaps.
/// Afterwards the marks alone say what is allocated. A crash at any moment of it is repaired by
/// doing it again. Throws Errc::corrupt, truncated. Cost: the pages of the lanes, a line per chunk,
/// and a few for each record and each block in a ring.
void recover(Space& space, Chunks& chunks, const Marks& marks, const Inspector& inspector);

/// The checksum that the header must have.
std::uint64_t header_checksum(const HeaderLayout& header) noexcept;

}  // namespace perdix::detail::alloc
