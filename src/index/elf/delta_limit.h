// How many rows may lie beside the lists of a table before an insert compacts it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>

#include <perdix/error.h>

#include "pm/probe.h"

namespace perdix::detail::index::elf {

/// Guarded by the mutex of a table's writers.
class DeltaLimit {
 public:
  /// The lists now have this many rows. The limit is a quarter of them, and at least `least`.
  void follow(std::uint64_t rows, std::uint64_t least) {
    max_ = std::max(pm::limit("elf: rows beside the lists", least), rows / 4);
  }

  bool is_passed_by(std::uint64_t inserted) const { return inserted > max_; }

  /// compact() after an insert that has passed the limit. The row is inserted, so that this fails
  /// is no error. Another thread may be at it. Else there was no room, and to try again for each
  /// row would take too long. The caller doesn't hold `writers`.
  template <class Compact>
  void compact(std::mutex& writers, const Compact& compact) {
    try {
      compact();
    } catch (const Error& error) {
      if (error.code() == Errc::in_use) return;
      const std::lock_guard lock(writers);
      max_ += max_ / 4 + 1;
    } catch (const std::bad_alloc&) {  // the next insert tries again
    }
  }

 private:
  std::uint64_t max_ = 0;
};

}  // namespace perdix::detail::index::elf
