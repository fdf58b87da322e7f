// Exclusive ownership of a pool's file: an open-file-description lock of the whole file.
//
// Unlike the older POSIX locks it also excludes a second opening in the same process, and isn't
// lost when another descriptor of the file closes. The kernel frees it when the owner ends, however
// that happens and whatever its children do: they have no descriptor of the file (forks.h). An
// owner that is killed while it forks leaves it to the child for the moment until the child closes
// the descriptor, so an opening waits for that.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "pm/file.h"
#include "pm/no_fork.h"

namespace perdix::detail::pool {

/// What tells the PID namespace of this process (its container's) from others; 0: the system
/// doesn't say.
std::uint64_t pid_namespace() noexcept;

class FileLock {
 public:
  /// How long one pause is, and after how many a lock that a process without an owner holds counts
  /// as in use: two seconds, in which the busiest machine lets a child run.
  static constexpr std::chrono::milliseconds kPause{1};
  static constexpr int kMaxPauses = 2000;

  /// Takes the lock, or throws in_use with the pid that the owner left in the file. `file` must
  /// outlive it, and was opened since the same NoFork began: no child has the descriptor.
  FileLock(const pm::File& file, const pm::NoFork& no_fork);

  /// Takes the lock, with pause() where the other constructor sleeps for kPause.
  FileLock(const pm::File& file, const pm::NoFork& no_fork, const std::function<void()>& pause);

  /// Frees the lock, also if a child that was made by other means than fork() shares the
  /// descriptor.
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  const pm::File& file_;
};

}  // namespace perdix::detail::pool
