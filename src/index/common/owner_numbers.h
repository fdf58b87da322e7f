// Numbers for the owners of chains in a log (wal::Owner). A number is never reused, not even after
// a crash. Engines whose leaves move need them to recognise a chain that has lost its END in a
// crash.
//
// The word in PM is an upper bound of the numbers that were drawn. It is advanced by many at a
// time. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>

#include "pm/access.h"
#include "pm/persist.h"
#include "pm/probe.h"
#include "util/spin_lock.h"
#include "wal/layout.h"

namespace perdix::detail::index {

class OwnerNumbers {
 public:
  /// All numbers up to *word may have been drawn before.
  OwnerNumbers(const pm::Persister& pm, std::uint64_t& word)
      : pm_(pm), word_(word), last_(pm::load(word)), drawn_ahead_(last_) {}

  const pm::Persister& pm() const { return pm_; }

  /// A number that none has; 0 when there is none left. Cost: now and then a line and a fence.
  wal::Owner draw() {
    const std::lock_guard lock(lock_);
    if (last_ >= wal::kMaxOwner) return 0;
    if (last_ == drawn_ahead_) {
      drawn_ahead_ += pm::limit("owner numbers: drawn ahead", std::uint64_t{1} << 16);
      pm_.publish(word_, drawn_ahead_);  // before anything in PM has one of them
    }
    return ++last_;
  }

 private:
  const pm::Persister& pm_;
  std::uint64_t& word_;
  std::uint64_t last_;
  std::uint64_t drawn_ahead_;
  util::SpinLock lock_;
};

}  // namespace perdix::detail::index
