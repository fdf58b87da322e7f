// The caller's progress function, called by engines, which know only their own exceptions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>

#include <perdix/elf.h>

namespace perdix::detail::index::elf {

/// Calls work(progress). An exception of the caller's progress function is rethrown unchanged when
/// the work has ended.
template <class Work>
bool with_progress(const Elf::Progress& progress, const Work& work) {
  if (!progress) return work(progress);
  std::exception_ptr thrown;
  const bool done = work([&](double share) {
    try {
      return progress(share);
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  });
  if (thrown) std::rethrow_exception(thrown);
  return done;
}

/// Thrown through work whose progress function has returned false.
struct Cancelled {};

/// The steps of a build or compact: one for each row and dimension. Calls the caller's function now
/// and then, also while no step ends. Used by one thread.
class Steps {
 public:
  /// `progress` may be empty; it outlives the Steps.
  Steps(const Elf::Progress& progress, std::uint64_t all) : progress_(progress), all_(all) {}

  /// Some steps have ended. Throws Cancelled.
  void end(std::uint64_t steps) {
    ended_ += steps;
    pass(steps);
  }

  /// As many rows were looked at as a step looks at for each of its own. Throws Cancelled.
  void pass(std::uint64_t rows) {
    constexpr std::uint64_t kPerCall = std::uint64_t{1} << 16;
    passed_ += rows;
    if (passed_ < kPerCall) return;
    passed_ = 0;
    call(static_cast<double>(std::min(ended_, all_)) / static_cast<double>(all_));
  }

  /// All have ended. Throws Cancelled.
  void finish() { call(1); }

 private:
  void call(double share) {
    if (progress_ && !progress_(share)) throw Cancelled();
  }

  const Elf::Progress& progress_;
  const std::uint64_t all_;
  std::uint64_t ended_ = 0;
  std::uint64_t passed_ = 0;  // since the last call
};

}  // namespace perdix::detail::index::elf
