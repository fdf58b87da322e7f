// Signals in threads of the library.
#pragma once

#include <pthread.h>

#include <csignal>

namespace perdix::detail::util {

/// Called by a thread of the library's own: signals are for those of the program. But for faults of
/// the thread itself: if it blocked them, the kernel would end the process without calling the
/// program's handler.
inline void block_signals() noexcept {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int fault : {SIGBUS, SIGFPE, SIGILL, SIGSEGV}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
}

/// While one exists, no signal reaches the calling thread. One of the given number that the kernel
/// sends this thread in that time is forgotten, so that the call that caused it reports an error
/// and no more; all others arrive afterwards.
class SignalsBlocked {
 public:
  explicit SignalsBlocked(int forgotten) noexcept : forgotten_(forgotten) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
    was_pending_ = is_pending();
  }
  ~SignalsBlocked() {
    // The set is what is waited for: with no time to wait, it is taken if it is there.
    if (!was_pending_ && is_pending()) {
      sigset_t only;
      sigemptyset(&only);
      sigaddset(&only, forgotten_);
      const timespec now{0, 0};
      sigtimedwait(&only, nullptr, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  bool is_pending() const noexcept {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, forgotten_) == 1;
  }

  int forgotten_;
  bool was_pending_;
  sigset_t before_;
};

}  // namespace perdix::detail::util
