// Synthetic PM for traces: addresses that are announced to a probe and never accessed. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pm/probe.h"

namespace perdix::testing::traces {

/// Announces accesses at offsets of an imaginary pool.
class Pm {
 public:
  explicit Pm(detail::pm::Probe& probe) : probe_(probe) {}

  void read(std::uint64_t offset, std::size_t n) { probe_.on_read(at(offset), n); }
  void write(std::uint64_t offset, std::size_t n) { probe_.on_write(at(offset), n); }

  /// Flushes and fences, as the published indexes do for each line or record.
  void persist(std::uint64_t offset, std::size_t n) {
    probe_.on_flush(at(offset), n, detail::pm::Site::current());
    probe_.on_fence(detail::pm::Site::current());
  }

  void write_and_persist(std::uint64_t offset, std::size_t n) {
    write(offset, n);
    persist(offset, n);  // as the indexes do after a write that others depend on
  }

 private:
  static constexpr std::uint64_t kBase = std::uint64_t{1} << 40;

  static const void* at(std::uint64_t offset) {
    return reinterpret_cast<const void*>(kBase + offset);
  }

  detail::pm::Probe& probe_;
};

}  // namespace perdix::testing::traces
