// Keeps the process from forking in the middle of something that a child must not find half done:
// between making a mapping or a descriptor and keeping it from children; inside of libpmem2, which
// has internal locks.
//
// There is one lock for the process, since fork() copies all of it. Code that must keep children
// out holds it in a handler of pthread_atfork(), as pool/forks.h does.
#pragma once

#include <mutex>

namespace perdix::detail::pm {

/// While one lives, no thread forks. Held for a few system calls, and by an opening that waits for
/// a lock (pool/file_lock.h) for up to two seconds; not recursive. Order of locks: after all
/// others.
class NoFork {
 public:
  NoFork() : lock_(mutex()) {}

  static std::mutex& mutex() noexcept;

 private:
  const std::lock_guard<std::mutex> lock_;
};

}  // namespace perdix::detail::pm
