// ElimDa: a hash index that writes persistent memory in whole media units and looks up in DRAM.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/point_index.h>

namespace perdix {

/// Whether an ElimDa collects pairs until they fill a unit in which the device writes
/// (ElimDaOptions::media_units).
enum class MediaUnits : std::uint8_t {
  detect,  ///< on persistent memory only, and where the caller named such a domain for the pool
  always,  ///< as its paper has it
  never,   ///< a pair comes straight to its place in the pool's table
};

/// Options of an ElimDa. The defaults are those of its paper (docs/papers.md). An index keeps what
/// it was created with, but for `resume_in_background`, `fingerprint_bits`, `reserved_cache_ways`
/// and `media_units`.
struct ElimDaOptions {
  /// After a restart, a background thread brings back what lies in DRAM, while the index is in use.
  /// If false, only what is used comes back, and the rest when a call needs all of it: size() and
  /// check().
  bool resume_in_background = true;

  /// Collecting logs, each of a media unit, which new pairs enter first: a power of two, at most
  /// 32768. 0: their number grows with the index, up to 8192, so that they take about half as much
  /// of the pool as its table at most; with the other defaults they are 64 at first. A pool with a
  /// small max_size has fewer: they take at most a sixty-fourth of it. Each has a lock: give a
  /// number if many threads write to an index that stays small.
  std::uint32_t collecting_logs = 0;

  /// Bytes that the device writes at a time: 64, 256 (Optane) or 4096.
  std::uint32_t media_unit = 256;

  /// Pairs of a bucket in DRAM: a power of two, at most 2048. Less than a media unit's sixteenth is
  /// raised to that.
  std::uint32_t d_bucket_pairs = 16;

  /// Pairs of a bucket in the pool: a power of two, at most 4096. Less than 16, or than two buckets
  /// of DRAM, is raised to that.
  std::uint32_t p_bucket_pairs = 256;

  /// Bits of DRAM for each pair in the pool, at most 16. Those that its position in the bucket
  /// doesn't need tell pairs apart. Fewer bits save nothing and cost reads; for experiments.
  std::uint32_t fingerprint_bits = 16;

  /// Ways of the last-level cache that this process reserves while the index is open, if the
  /// machine has Intel CAT, resctrl is mounted and the process may use it. Has no effect elsewhere.
  /// The process fills no other ways. 0: none. This concerns the whole process, so the first index
  /// that asks decides.
  std::uint32_t reserved_cache_ways = 0;

  /// Whether pairs are collected until they fill a media unit. Saves writes of persistent memory,
  /// which writes in such units; elsewhere it is only work. Each opening may choose anew; pairs
  /// that the last one has collected come to the table.
  MediaUnits media_units = MediaUnits::detect;
};

/// A durable map without order, see PointIndex.
///
/// Lookups take no lock and never wait. Writers wait for writers of keys that share a collecting
/// log or a bucket, which are few. A write to a segment that is being split waits for the split;
/// writes to other segments do not.
///
/// Cost: get() reads one line of the pool, and those of strings; of a key that is absent none, but
/// for one lookup in thirty. In ordinary memory and files an insert writes the pair and a bit to
/// the pool. On persistent memory (ElimDaOptions::media_units) a pair is written to the pool three
/// times in all, in units of the device (ElimDaOptions::media_unit), and insert_ahead() does not
/// look whether the key is there: it is the fastest way to add many. The first size() after opening
/// reads the whole index, and so does the next one after such an insert_ahead(); others cost
/// nothing.
///
/// An index without pairs takes 65 KiB of the pool; where it collects, 85 KiB of the pool and
/// 40 KiB of DRAM. While it is small it gets more collecting logs as it grows
/// (ElimDaOptions::collecting_logs), for which writers wait. For many small indexes Cceh is the
/// better engine: 16 KiB of the pool.
///
/// The index keeps three or four bytes of DRAM for each pair. The space of erased pairs is used
/// again; when the pool is full, parts of the index without pairs are given back.
template <Storable K, Storable V>
class ElimDa : public PointIndex<K, V> {
 public:
  /// The options of an opening.
  using Options = ElimDaOptions;

  /// How calls take a key.
  using KeyArgument = Argument<K>;
  /// How calls take a value.
  using ValueArgument = Argument<V>;

  /// Opens the index of that name in the pool, or creates it. Throws wrong_engine, wrong_kind,
  /// in_use if it is open already, invalid_argument for a bad name or options that can't be,
  /// corrupt. Cost: reads a word for each sixteen pairs that have not come into the PM table yet,
  /// and the collecting logs, 2 MiB at most. What lies in DRAM comes back later: as calls need it,
  /// and in the background (`options.resume_in_background`).
  ElimDa(const Pool& pool, std::string_view name, const ElimDaOptions& options = {});

  /// Adds a key if it is absent; has no effect if it is there, and does not say which. Durable when
  /// it returns, like the other calls. Looks first, like insert(), where the index collects nothing
  /// (ElimDaOptions::media_units) or caches are volatile.
  void insert_ahead(KeyArgument key, ValueArgument value);
};

extern template class ElimDa<std::uint64_t, std::uint64_t>;
extern template class ElimDa<std::uint64_t, std::string>;
extern template class ElimDa<std::string, std::uint64_t>;
extern template class ElimDa<std::string, std::string>;

}  // namespace perdix
