// A read-side section: while a Guard lives, nothing that its thread could reach when the Guard
// began is disposed of.
//
// Over liburcu's `bp` flavour: threads need no registration, a Guard costs a few nanoseconds and
// writes only memory of its own thread. Guards nest. A Guard belongs to the thread that made it.
//
// Rule: no Guard is held while code of the library's users runs (index/common/batch.h). So a Guard
// lasts no longer than one call needs, and no thread waits for a user's code.
// What waits for a grace period (Reclaimer::advance, drain, settle) asks held() and does not wait
// for the calling thread.
#pragma once

extern "C" {
// liburcu wants a thread's record aligned to 128 bytes and allocates it with less. That is
// harmless, but not to a sanitizer.
__attribute__((no_sanitize("alignment"))) static inline void _urcu_bp_read_lock_update(
    unsigned long);
__attribute__((no_sanitize("alignment"), always_inline)) static inline void _urcu_bp_read_lock();
__attribute__((no_sanitize("alignment"), always_inline)) static inline void _urcu_bp_read_unlock();
__attribute__((no_sanitize("alignment"))) static inline int _urcu_bp_read_ongoing();
}
#include <urcu/static/urcu-bp.h>

#include "epoch/tsan.h"
#include "pm/probe.h"

namespace perdix::detail::epoch {

class Guard {
 public:
  // Inlined: after a few uses in a file, compilers would decide otherwise.
  [[gnu::always_inline]] Guard() noexcept {
    if (pm::kInstrumented && !held()) pm::on_section();
    _urcu_bp_read_lock();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  [[gnu::always_inline]] ~Guard() {
    // The reads of this section come before whatever follows a grace period: see wait_for_readers.
    tsan::release(&urcu_bp_gp);
    _urcu_bp_read_unlock();
  }

  /// Whether the current thread is inside a Guard.
  static bool held() noexcept { return _urcu_bp_read_ongoing() != 0; }
};

}  // namespace perdix::detail::epoch
