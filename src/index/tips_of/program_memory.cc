#include "index/tips_of/program_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "index/tips_of/layout.h"

namespace perdix::detail::index::tips_of {
namespace {

// The shadow of a sanitizer covers so much that numbers seem to be addresses in it.
constexpr std::uintptr_t kMaxRegionBytes = std::uintptr_t{1} << 40;

// The kernel's half of the addresses, where it maps a page for the program.
constexpr std::uintptr_t kKernel = std::uintptr_t{1} << 63;

// The kernel maps nothing below (vm.mmap_min_addr).
constexpr std::uint64_t kMinMapped = 64 << 10;

}  // namespace

bool is_mapped(std::uint64_t address) {
  if (address < kMinMapped || address >= kKernel) return false;
  unsigned char resident = 0;
  void* const page = reinterpret_cast<void*>(address / kPage * kPage);
  return ::mincore(page, kPage, &resident) == 0 || errno != ENOMEM;
}

ProcessMemory::ProcessMemory(Region pool, const char* file) {
  std::ifstream maps(file);
  if (!maps) regions_.push_back({{0, kKernel}, {}});  // is_mapped() tells more
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    Named named{};
    char dash = 0;
    std::string permissions, offset, device, inode;
    words >> std::hex >> named.region.begin >> dash >> named.region.end >> permissions >> offset >>
        device >> inode >> std::ws;
    std::getline(words, named.name);
    if (named.region.begin < pool.end && named.region.end > pool.begin) continue;
    if (permissions.starts_with("---") || named.region.begin >= kKernel ||
        named.region.end - named.region.begin >= kMaxRegionBytes)
      continue;
    // Below the first file lies nothing of the program's, but a part of such a shadow.
    if (regions_.empty() && named.name.empty()) continue;
    regions_.push_back(std::move(named));
  }
}

std::optional<std::string> ProcessMemory::at(std::uint64_t address) const {
  const auto next = std::upper_bound(
      regions_.begin(), regions_.end(), address,
      [](std::uint64_t word, const Named& named) { return word < named.region.begin; });
  if (next == regions_.begin() || address >= std::prev(next)->region.end) return std::nullopt;
  const std::string& name = std::prev(next)->name;
  return name.empty() ? "memory of the process" : name;
}

AddressFilter::AddressFilter(Region pool, std::uintptr_t lowest) : pool_(pool) {
  const ProcessMemory process(pool);
  for (const ProcessMemory::Named& named : process.regions()) {
    if (named.region.end <= lowest) continue;
    const std::uintptr_t begin = std::max(named.region.begin, lowest + kGrowth) - kGrowth;
    const std::uintptr_t end = named.region.end + kGrowth;
    if (!near_.empty() && begin <= near_.back().end) {
      near_.back().end = end;
    } else {
      near_.push_back({begin, end});
    }
  }
}

}  // namespace perdix::detail::index::tips_of
