// Which addresses a container must not keep: those of this process's memory, which lies elsewhere
// in the next process. A write looks for addresses of the program in the container's object
// (ProgramImages, cheap); a trial of a type looks for addresses of anything but the pool
// (ProcessMemory).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace perdix::detail::index::tips_of {

/// A range of addresses.
struct Region {
  std::uintptr_t begin;
  std::uintptr_t end;
};

/// Where the program and its shared libraries lie. Libraries that are loaded after the first call
/// of of_this_program() are not known. Immutable, so thread-safe.
class ProgramImages {
 public:
  static const ProgramImages& of_this_program();

  /// Whether a word of [p, p + n) is an address in the program or one of its libraries.
  bool any_in(const void* p, std::size_t n) const;

 private:
  ProgramImages();
  std::vector<Region> regions_;  // ascending
};

/// All that was mapped in this process, except a pool, when the object was made.
class ProcessMemory {
 public:
  /// `[pool, pool + bytes)` is left out. Throws io_error.
  ProcessMemory(const void* pool, std::uint64_t bytes);

  /// The name of what lies at an address ("[heap]", the path of a library); nullopt if nothing
  /// does.
  std::optional<std::string> at(std::uint64_t address) const;

 private:
  struct Named {
    Region region;
    std::string name;
  };
  std::vector<Named> regions_;  // ascending
};

}  // namespace perdix::detail::index::tips_of
