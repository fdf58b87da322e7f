// The medium together with its expected content, so that all changes by an opening can be undone.
//
// Invariant between two openings: medium and copy hold the same bytes. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "testing/medium.h"
#include "testing/trace.h"

namespace perdix::testing {

class Stage {
 public:
  explicit Stage(std::uint64_t size) : medium_(size), copy_(size) {}

  Medium& medium() noexcept { return medium_; }
  const std::byte* bytes() const noexcept { return copy_.data(); }

  /// Takes what the medium holds as what it should hold. Cost: reads all of it.
  void adopt();

  /// Changes both. Undone by rollback() to an earlier mark().
  void patch(std::uint64_t offset, const std::byte* bytes, std::size_t n);
  std::size_t mark() const noexcept { return undo_.size(); }
  void rollback(std::size_t mark);

  /// Takes back the stores of a trace: the medium has its expected content again.
  void restore(const Trace& trace);

  /// The first offset at which the medium does not hold what it should: somebody stored past the
  /// seam. Cost: reads all of it.
  std::optional<std::uint64_t> difference() const;

 private:
  struct Undo {
    std::uint64_t offset;
    std::size_t size;
    std::size_t at;  // in old_
  };

  Medium medium_;
  std::vector<std::byte> copy_;
  std::vector<Undo> undo_;
  std::vector<std::byte> old_;
};

}  // namespace perdix::testing
