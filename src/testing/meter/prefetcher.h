// The streamer of Intel's level 2 cache: follows ascending accesses within a page of 4 KiB and runs
// ahead of them. Each access that continues a stream fetches a few lines more, up to a distance.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "testing/meter/options.h"

namespace perdix::testing {

class Prefetcher {
 public:
  explicit Prefetcher(const PrefetchOptions& options) : options_(options) {}

  /// Lines to fetch: [begin, end), perhaps empty.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  /// To be told of each access to another line than the one before.
  Range observe(std::uint64_t line);

 private:
  struct Stream {
    std::uint64_t page = 0;
    std::uint64_t last = 0;   // the line accessed last
    std::uint64_t front = 0;  // the first line that has not been fetched
  };

  Range advance(Stream& stream, std::uint64_t line) const;

  PrefetchOptions options_;
  std::vector<Stream> streams_;  // the most recently used first
};

}  // namespace perdix::testing
