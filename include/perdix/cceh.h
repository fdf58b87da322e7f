// Cceh: a hash index that lies in persistent memory as a whole (CCEH in docs/papers.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/point_index.h>

namespace perdix {

/// Options of a Cceh; may differ each time that it is opened, but for `segment_bytes` and
/// `lazy_depth`: a table that is created gets these, and keeps them.
struct CcehOptions {
  /// Bytes of DRAM for write buffers, of 9 KiB each, for all that is kept about them, and for the
  /// copy of the directory (Technique::boc): a bound, but for 64 KiB and 5 %. 0: none, every write
  /// goes to its place in the pool. kUnlimited: every written segment gets one, up to a million. In
  /// between, the segments written to most have one. Without a `technique` it has no effect. If
  /// more were in use before the index was closed, those that exceed the budget are merged when it
  /// is opened. An index that had none before gets none while its pool is full.
  std::uint64_t dram_budget = 0;

  /// The use of `dram_budget`; may differ each time.
  Technique technique = Technique::none;

  /// After a restart, a background thread brings back write buffers and what is cached, while the
  /// index is in use. If false, only what is used comes back, and the rest when a call needs all of
  /// it: size() and check(). Long writing with write buffers brings back the rest, too: until then
  /// their log can't be shortened.
  bool resume_in_background = true;

  /// Bytes of a segment, its first line included: a multiple of 64 from 320 to 1 MiB. The pool
  /// stores four segments of the default in 64 KiB; one of 16,384 bytes would take a third more.
  std::uint32_t segment_bytes = 16320;

  /// A split of a segment whose keys have fewer bits of their hashes in common writes one half only
  /// and leaves the moved pairs behind, until others need their place (the paper's lazy deletion);
  /// others write both halves. At most 64; with keys of strings more than 16 count as 16.
  std::uint32_t lazy_depth = 64;
};

/// A durable map without order, see PointIndex.
///
/// Readers take no lock and write nothing shared, but wait for a writer that is inside their
/// segment, which a split holds for as long as it copies half of it. Writers to different segments
/// do not wait for each other.
///
/// Cost: get() reads two words of the directory and two lines of a segment, both at once, and the
/// lines of strings. An insert or update of integers writes one line; one insert of sixteen moves
/// another pair, which writes two more lines and a record. A segment is split when about 0.86 of
/// its slots are full.
/// The first size() that runs without concurrent writers counts all pairs; later calls cost
/// nothing. stats() reads the whole index. for_each() shows each segment as it was at one instant
/// (or as much of a segment as it copies in one step).
///
/// With `technique` and `dram_budget`, new pairs of a segment wait in a buffer in DRAM
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
  /// The options of an opening.
  using Options = CcehOptions;

  /// Opens the index of that name in the pool, or creates it. Throws wrong_engine, wrong_kind,
  /// in_use if it is open already, invalid_argument for a bad name or options that can't be,
  /// corrupt. Cost: a few lines of the pool, whatever the size: nothing is rebuilt.
  Cceh(const Pool& pool, std::string_view name, const CcehOptions& options = {});
};

extern template class Cceh<std::uint64_t, std::uint64_t>;
extern template class Cceh<std::uint64_t, std::string>;
extern template class Cceh<std::string, std::uint64_t>;
extern template class Cceh<std::string, std::string>;

}  // namespace perdix
