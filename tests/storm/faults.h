// Injects failures of system calls: an interposer for operator new, mmap and mprotect,
// posix_fallocate, msync and fsync, and pthread_create. The program itself defines these functions,
// so its definitions take precedence over those of the C library. What it interposes of
// posix_fallocate and ftruncate is also for descriptors.h.
//
// A thread arms itself for its own calls into the library (Armed); the library's own threads are
// armed by the process (arm_others). Threads of the storm are exempt from the latter. Failures stop
// when the object goes, or at the n-th call unless they are lasting. Thread-safe.
#pragma once

#include <cstdint>

#include "storm/plan.h"

namespace perdix::test::storm::faults {

/// The n-th call (from 1) of this thread fails, and if `lasting` all behind it.
class Armed {
 public:
  Armed(Fault fault, unsigned nth, bool lasting);
  ~Armed();
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;

  /// Whether a call has failed.
  bool struck() const;
};

/// While it exists, calls of this thread do not fail: for a visitor's own work.
class Spared {
 public:
  Spared();
  ~Spared();
  Spared(const Spared&) = delete;
  Spared& operator=(const Spared&) = delete;

 private:
  bool before_;
};

/// The n-th call of all threads that are not the storm's own fails; none with Fault::none.
void arm_others(Fault fault, unsigned nth);

/// This thread is the storm's.
void exempt_this_thread();

/// From now on std::bad_alloc is taken for an Error.
void accept_bad_alloc();
bool accepts_bad_alloc();

/// Failures so far, in this process.
std::uint64_t injected();

}  // namespace perdix::test::storm::faults
