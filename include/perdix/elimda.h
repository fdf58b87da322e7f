// ElimDa: a hash index that writes persistent memory in whole media units and looks up in DRAM.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/point_index.h>

namespace perdix {

/// A durable map without order, see PointIndex.
///
/// Lookups take no lock and never wait. Writers wait for writers of keys that share a collecting
/// log or a bucket, which are few. A write to a segment that is being split waits for the split;
/// writes to other segments do not.
///
/// Cost: get() reads one line of the pool, and those of strings; of a key that is absent none, but
/// for one lookup in fifty. A pair is written to the pool three times in all, in units of the
/// device (IndexOptions::elimda). insert_ahead() does not look whether the key is there and is the
/// fastest way to add many. The first size() after opening reads the whole index, and so does the
/// next one after insert_ahead(); others cost nothing.
///
/// An index without pairs takes 85 KiB of the pool and 40 KiB of DRAM. While it is small it gets
/// more collecting logs as it grows (ElimDaOptions::collecting_logs), for which writers wait. For
/// many small indexes Cceh is the better engine: 16 KiB of the pool.
///
/// The index keeps about four bytes of DRAM for each pair. The space of erased pairs is used again;
/// when the pool is full, parts of the index without pairs are given back.
template <Storable K, Storable V>
class ElimDa : public PointIndex<K, V> {
 public:
  /// How calls take a key.
  using KeyArgument = Argument<K>;
  /// How calls take a value.
  using ValueArgument = Argument<V>;

  /// Opens the index of that name in the pool, or creates it. Throws wrong_engine, wrong_kind,
  /// in_use if it is open already, invalid_argument for a bad name or options that can't be,
  /// corrupt. Cost: reads a word for each sixteen pairs that have not come into the PM table yet,
  /// and the collecting logs, 2 MiB at most. What lies in DRAM comes back later: as calls need it,
  /// and in the background (`options.resume_in_background`).
  ElimDa(const Pool& pool, std::string_view name, const IndexOptions& options = {});

  /// Adds a key if it is absent; has no effect if it is there, and does not say which. Durable when
  /// it returns, like the other calls. Where caches are volatile it looks first, like insert().
  void insert_ahead(KeyArgument key, ValueArgument value);
};

extern template class ElimDa<std::uint64_t, std::uint64_t>;
extern template class ElimDa<std::uint64_t, std::string>;
extern template class ElimDa<std::string, std::uint64_t>;
extern template class ElimDa<std::string, std::string>;

}  // namespace perdix
