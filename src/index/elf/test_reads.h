// Counts what a call reads of PM, in bytes: its cost, without a clock. Only in the instrumented
// build.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pm/probe.h"

namespace perdix::detail::index::elf {

class ReadCounter final : public pm::Probe {
 public:
  ReadCounter() : before_(pm::install_probe(this)) {}
  ~ReadCounter() override { pm::install_probe(before_); }
  ReadCounter(const ReadCounter&) = delete;
  ReadCounter& operator=(const ReadCounter&) = delete;

  void on_read(const void*, std::size_t n) override { bytes_ += n; }
  void on_write(const void*, std::size_t) override {}
  bool on_flush(const void*, std::size_t, const pm::Site&) override { return true; }
  bool on_fence(const pm::Site&) override { return true; }

  std::uint64_t bytes() const { return bytes_; }

 private:
  pm::Probe* const before_;
  std::uint64_t bytes_ = 0;
};

/// Bytes that call() reads.
template <class Call>
std::uint64_t bytes_read(const Call& call) {
  const ReadCounter counter;
  call();
  return counter.bytes();
}

}  // namespace perdix::detail::index::elf
