// Of threads: the stripe at which each appends, and whether a look at the log is due. Threads whose
// numbers collide share a cursor.
//
// All orders are relaxed: a stripe is as good as any, and a look more or less changes nothing.
// Thread-safe.
#pragma once

#include <array>
#include <atomic>

#include "util/stripe.h"
#include "wal/layout.h"

namespace perdix::detail::wal {

class Cursors {
 public:
  Cursors() noexcept {
    for (unsigned i = 0; i < util::kStripes; ++i) all_[i].stripe = i % kStripes;
  }

  /// The stripe of the calling thread.
  unsigned stripe() const noexcept {
    return all_[util::current_stripe()].stripe.load(std::memory_order_relaxed);
  }
  void go_to(unsigned stripe) noexcept {
    all_[util::current_stripe()].stripe.store(stripe, std::memory_order_relaxed);
  }

  /// Whether the calling thread should look at the log; if so, it is not due any more. Usually one
  /// load.
  bool take_look() noexcept {
    std::atomic<bool>& due = all_[util::current_stripe()].look_due;
    if (!due.load(std::memory_order_relaxed)) [[likely]]
      return false;
    due.store(false, std::memory_order_relaxed);
    return true;
  }
  void make_look_due() noexcept {
    all_[util::current_stripe()].look_due.store(true, std::memory_order_relaxed);
  }

  /// Makes a look due with every kRefusalsPerLook-th call.
  void note_refusal() noexcept {
    Cursor& own = all_[util::current_stripe()];
    // Not one atomic addition: threads that share the cursor may count too few.
    const unsigned refusals = own.refusals.load(std::memory_order_relaxed) + 1;
    own.refusals.store(refusals % kRefusalsPerLook, std::memory_order_relaxed);
    if (refusals == kRefusalsPerLook) own.look_due.store(true, std::memory_order_relaxed);
  }

  /// Not after each refused record: it takes long to find that a full pool has no space, and during
  /// that time writes go to the leaves.
  static constexpr unsigned kRefusalsPerLook = 64;

 private:
  struct alignas(util::kCacheLine) Cursor {
    std::atomic<unsigned> stripe{0};
    std::atomic<unsigned> refusals{0};
    std::atomic<bool> look_due{false};
  };

  std::array<Cursor, util::kStripes> all_;  // of threads, by their stripes
};

}  // namespace perdix::detail::wal
