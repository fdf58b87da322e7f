// Which addresses a container must not keep: those of this process's memory, which lies elsewhere
// in the next process: the program and its libraries, heaps, stacks and other mappings.
//
// A write asks AddressFilter about each word that it has changed, which takes nanoseconds and
// answers "no" for nearly all numbers; then is_mapped(), a system call; then ProcessMemory, which
// reads the process's map.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace perdix::detail::index::tips_of {

/// A range of addresses.
struct Region {
  std::uintptr_t begin;
  std::uintptr_t end;
  bool contains(std::uintptr_t address) const { return address - begin < end - begin; }
};

/// Whether this process has memory at an address.
bool is_mapped(std::uint64_t address);

/// All that was mapped in this process, except a pool, when the object was made; all addresses if
/// there is no /proc to tell.
class ProcessMemory {
 public:
  struct Named {
    Region region;
    std::string name;
  };

  /// `pool` is left out.
  explicit ProcessMemory(Region pool, const char* file = "/proc/self/maps");

  /// The name of what lies at an address ("[heap]", the path of a library); nullopt if nothing
  /// does.
  std::optional<std::string> at(std::uint64_t address) const;

  const std::vector<Named>& regions() const { return regions_; }

 private:
  std::vector<Named> regions_;  // ascending
};

/// Tells most numbers from addresses. Knows where the process had memory when the object was made,
/// and takes all within kGrowth of that for addresses, since later mappings lie near earlier ones.
/// Immutable, so thread-safe.
class AddressFilter {
 public:
  /// Below lie more numbers than addresses: in programs that are not position-independent, and in
  /// no others, there are both.
  static constexpr std::uintptr_t kNumbersEnd = std::uintptr_t{1} << 32;
  static constexpr std::uintptr_t kGrowth = std::uintptr_t{1} << 42;

  /// For addresses outside of `pool` from `lowest` on.
  explicit AddressFilter(Region pool, std::uintptr_t lowest = kNumbersEnd);

  bool may_be_address(std::uint64_t word) const {
    for (const Region& region : near_)
      if (region.contains(word)) return !pool_.contains(word);
    return false;
  }

 private:
  Region pool_;
  std::vector<Region> near_;  // ascending and apart, so there are few
};

}  // namespace perdix::detail::index::tips_of
