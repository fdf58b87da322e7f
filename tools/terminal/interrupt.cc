#include "terminal/interrupt.h"

#include <signal.h>

namespace perdix::terminal {
namespace {

// A signal handler has no argument to carry state in, so this is the one variable of its kind.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a handler may only touch lock-free atomics");

void on_signal(int /*number*/) { interrupted.store(true, std::memory_order_relaxed); }

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // and no SA_RESTART: a blocked read returns
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  return interrupted;
}

}  // namespace perdix::terminal
