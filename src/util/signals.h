// What a thread of the library does about signals.
#pragma once

#include <pthread.h>

#include <csignal>

namespace perdix::util {

/// Called by a thread of the library's own: signals are for those of the program.
inline void block_signals() noexcept {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace perdix::util
