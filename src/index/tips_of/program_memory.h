// Which addresses a container must not keep: those of this process's memory, which lies elsewhere
// in the next process.
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

/// The program and its shared libraries, as they were when they were first asked for. Immutable.
class ProgramImages {
 public:
  static const ProgramImages& of_this_program();

  /// Whether a word of [p, p + n) is an address in one of them.
  bool any_in(const void* p, std::size_t n) const;

 private:
  ProgramImages();
  std::vector<Region> regions_;  // ascending
};

/// All that is mapped in this process but a pool, at one moment.
class ProcessMemory {
 public:
  /// `[pool, pool + bytes)` is left out. Throws io_error.
  ProcessMemory(const void* pool, std::uint64_t bytes);

  /// What lies at an address ("[heap]", the path of a library), or nothing.
  std::optional<std::string> at(std::uint64_t address) const;

 private:
  struct Named {
    Region region;
    std::string name;
  };
  std::vector<Named> regions_;  // ascending
};

}  // namespace perdix::detail::index::tips_of
