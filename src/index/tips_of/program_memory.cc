#include "index/tips_of/program_memory.h"

#include <link.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include <perdix/error.h>

namespace perdix::detail::index::tips_of {
namespace {

bool is_before(std::uintptr_t address, const Region& region) { return address < region.begin; }

}  // namespace

ProgramImages::ProgramImages() {
  const auto add = [](dl_phdr_info* image, std::size_t, void* regions) {
    for (unsigned i = 0; i < image->dlpi_phnum; ++i) {
      const auto& header = image->dlpi_phdr[i];
      if (header.p_type != PT_LOAD) continue;
      const std::uintptr_t begin = image->dlpi_addr + header.p_vaddr;
      static_cast<std::vector<Region>*>(regions)->push_back({begin, begin + header.p_memsz});
    }
    return 0;
  };
  ::dl_iterate_phdr(add, &regions_);
  std::sort(regions_.begin(), regions_.end(),
            [](const Region& a, const Region& b) { return a.begin < b.begin; });
}

const ProgramImages& ProgramImages::of_this_program() {
  static const ProgramImages images;
  return images;
}

bool ProgramImages::any_in(const void* p, std::size_t n) const {
  for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= n; at += sizeof(std::uintptr_t)) {
    std::uintptr_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(p) + at, sizeof word);
    const auto next = std::upper_bound(regions_.begin(), regions_.end(), word, is_before);
    if (next != regions_.begin() && word < std::prev(next)->end) return true;
  }
  return false;
}

ProcessMemory::ProcessMemory(const void* pool, std::uint64_t bytes) {
  // The shadow of a sanitizer covers so much that numbers seem to be addresses in it.
  constexpr std::uintptr_t kMaxRegionBytes = std::uintptr_t{1} << 40;
  const auto pool_begin = reinterpret_cast<std::uintptr_t>(pool);
  std::ifstream maps("/proc/self/maps");
  if (!maps) throw Error(Errc::io_error, "/proc/self/maps, which TipsOf needs, can't be read");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    Named named{};
    char dash = 0;
    std::string permissions, offset, device, inode;
    words >> std::hex >> named.region.begin >> dash >> named.region.end >> permissions >> offset >>
        device >> inode >> std::ws;
    std::getline(words, named.name);
    if (named.region.begin < pool_begin + bytes && named.region.end > pool_begin) continue;
    if (permissions.starts_with("---") || named.region.end - named.region.begin >= kMaxRegionBytes)
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

}  // namespace perdix::detail::index::tips_of
