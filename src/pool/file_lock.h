// Exclusive ownership of a pool's file: an open-file-description lock of the whole file.
//
// Unlike the older POSIX locks it also excludes a second opening in the same process, and isn't
// lost when another descriptor of the file closes. The kernel frees it when the owner ends, however
// that happens. (A child of fork() that doesn't exec shares it until it ends; the descriptor closes
// on exec.)
#pragma once

#include "pm/file.h"

namespace perdix::pool {

class FileLock {
 public:
  /// Takes the lock, or throws in_use with the pid that the owner left in the file. `file` must
  /// outlive it.
  explicit FileLock(const pm::File& file);

  /// Frees the lock, also if a child process shares the descriptor.
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  const pm::File& file_;
};

}  // namespace perdix::pool
