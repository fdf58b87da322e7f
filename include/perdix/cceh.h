// Cceh: a hash index that lies in persistent memory as a whole (CCEH in docs/papers.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/point_index.h>

namespace perdix {

/// A durable map without order, see PointIndex.
///
/// Readers take no lock and write nothing shared, but wait for a writer that is inside their
/// segment, which a split holds for as long as it copies half of it. Writers to different segments
/// do not wait for each other.
///
/// Cost: get() reads two words of the directory and one to four adjacent lines of a segment, four
/// if the key is absent, and the lines of strings. An insert or update of integers writes one line.
/// The first size() that runs without concurrent writers counts all pairs; later calls cost
/// nothing. stats() reads the whole index. for_each() shows each segment as it was at one instant
/// (or as much of a segment as it copies in one step).
///
/// With IndexOptions::technique and dram_budget, new pairs of a segment wait in a buffer in DRAM
/// and in a log, and reach the segment in batches of up to half of what it holds: far fewer bytes
/// are written to media with large units. A call that finds a full buffer writes the segment or,
/// with `bo`, a copy of it. With `boc` the directory has a copy in DRAM. The technique may differ
/// each time that the index is opened.
///
/// The space of erased pairs is used again; when the pool is full, segments without pairs are given
/// back.
template <Storable K, Storable V>
class Cceh : public PointIndex<K, V> {
 public:
  /// Opens the index of that name in the pool, or creates it. Throws wrong_engine, wrong_kind,
  /// in_use if it is open already, invalid_argument for a bad name or options that can't be,
  /// corrupt. Cost: a few lines of the pool, whatever the size: nothing is rebuilt.
  Cceh(const Pool& pool, std::string_view name, const IndexOptions& options = {});
};

extern template class Cceh<std::uint64_t, std::uint64_t>;
extern template class Cceh<std::uint64_t, std::string>;
extern template class Cceh<std::string, std::uint64_t>;
extern template class Cceh<std::string, std::string>;

}  // namespace perdix
