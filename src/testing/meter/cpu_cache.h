// A set-associative write-back cache of lines, with the least recently used line of a set as the
// victim. It holds no data, only which lines are there and which of them are dirty.
//
// Sets are chosen by a hash of the line, as the slices of Intel's last level are, so that no stride
// of an engine falls into few sets. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "testing/meter/options.h"

namespace perdix::testing {

class CpuCache {
 public:
  explicit CpuCache(const CpuCacheOptions& options);

  /// Looks a line up and makes it the youngest of its set. `write` makes it dirty.
  bool touch(std::uint64_t line, bool write);

  /// Without effect on the order.
  bool contains(std::uint64_t line) const;

  /// Brings a line in that is not there, as the youngest. Returns the dirty line that had to leave.
  std::optional<std::uint64_t> insert(std::uint64_t line, bool dirty);

  /// Takes a line out, whether it is there or dirty or not.
  void drop(std::uint64_t line);

  /// Makes a line clean and keeps it. False if it was not there or not dirty.
  bool clean(std::uint64_t line);

 private:
  // A way is line * 2 + dirty; the youngest first.
  std::uint64_t* set_of(std::uint64_t line);
  const std::uint64_t* set_of(std::uint64_t line) const;
  std::size_t position_of(const std::uint64_t* set, std::uint64_t line) const;

  std::size_t ways_;
  std::size_t sets_;
  std::vector<std::uint64_t> table_;
};

}  // namespace perdix::testing
