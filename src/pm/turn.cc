#include "pm/turn.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace perdix::detail::pm {

Turn::Kind Turn::wait() noexcept {
  Kind seen = Kind::none;
  kind_.compare_exchange_strong(seen, kAsleep, std::memory_order_acquire);
  while (kind_.load(std::memory_order_acquire) == kAsleep) {
    // Returns at once if the word has changed; or for no reason.
    ::syscall(SYS_futex, &kind_, FUTEX_WAIT_PRIVATE, static_cast<std::uint32_t>(kAsleep), nullptr,
              nullptr, 0);
  }
  return kind_.load(std::memory_order_acquire);
}

void Turn::give(Kind kind) noexcept {
  if (kind_.exchange(kind, std::memory_order_acq_rel) != kAsleep) return;
  // The thread may have seen the store and be gone, and the word be another thread's: the call uses
  // the address alone, and a thread that it wakes there looks at its own word and sleeps on.
  ::syscall(SYS_futex, &kind_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace perdix::detail::pm
