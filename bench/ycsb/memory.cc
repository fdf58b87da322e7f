#include "ycsb/memory.h"

#include <malloc.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

namespace perdix::bench {

std::uint64_t resident_anonymous_bytes() {
  malloc_trim(0);
  std::ifstream status("/proc/self/status");
  std::string field;
  while (status >> field) {
    if (field == "RssAnon:") {
      std::uint64_t kib = 0;
      status >> kib;
      return kib * 1024;
    }
    status.ignore(1 << 16, '\n');
  }
  return 0;
}

std::uint64_t heap_bytes_in_use() {
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

std::uint64_t allocated_bytes(const std::filesystem::path& directory) {
  constexpr std::uint64_t kStatBlock = 512;  // the unit of st_blocks on Linux
  std::uint64_t total = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    struct stat facts {};
    if (entry.is_regular_file() && ::stat(entry.path().c_str(), &facts) == 0) {
      total += static_cast<std::uint64_t>(facts.st_blocks) * kStatBlock;
    }
  }
  return total;
}

}  // namespace perdix::bench
