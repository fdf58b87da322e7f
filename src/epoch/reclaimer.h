// Reclamation by grace periods: what was unlinked from a structure is disposed of once no Guard can
// still see it.
//
// Grace periods are numbered from 1. A ticket is the number of the first period that certainly
// starts after the ticket was taken; when that period has ended, so has every Guard that was there
// when the ticket was taken.
//
// Invariants:
//   1. completed_ <= started_, and both only grow; they differ only while a thread holds
//      advancing_.
//   2. Objects are taken from the pending lists before a period starts and disposed of after it
//      ended.
//   3. The background thread, if there is one, advances while requested_ > completed_, that is,
//      while someone waits for something, and sleeps otherwise.
//
// Thread-safe. `retire` and `ticket` may be called inside a Guard, and by a dispose function.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "epoch/tsan.h"
#include "util/spin_lock.h"
#include "util/stripe.h"

namespace perdix::detail::epoch {

class Disposer;

/// A base of objects that a Reclaimer may get: their place in its lists. Their readers leave it
/// alone.
struct Retirable {
  Retirable* next_retired = nullptr;
  Disposer* disposer = nullptr;
};

/// Disposes of objects, as Reclaimer::retire() asks of its `dispose`, and outlives them.
class Disposer {
 public:
  virtual void dispose(Retirable& object) noexcept = 0;

 protected:
  ~Disposer() = default;
};

/// Of objects from operator new.
template <std::derived_from<Retirable> Object>
class Deleter final : public Disposer {
 public:
  void dispose(Retirable& object) noexcept override { delete static_cast<Object*>(&object); }
};

class Reclaimer {
 public:
  using Ticket = std::uint64_t;
  using Dispose = void (*)(void* object, void* context);

  /// Without a background thread grace periods end only in calls of advance(), drain() and
  /// settle(): for runs that must repeat. Throws no_threads if there are too many for one more.
  explicit Reclaimer(bool background = true);
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  /// Disposes of everything that is pending. No Guard may be held by this thread.
  ~Reclaimer();

  /// For something that the caller has just unlinked. With a background thread, `passed` will
  /// become true without further calls.
  Ticket ticket();

  /// Whether every Guard has ended that might have seen an object which was unlinked before the
  /// ticket was taken. One load.
  bool passed(Ticket ticket) const noexcept {
    return completed_.load(std::memory_order_acquire) >= ticket;
  }

  /// Calls dispose(object, context) after a grace period, on an unspecified thread and outside of
  /// all Guards. The object must be unlinked already. dispose must not throw, and must not wait for
  /// a grace period. Never waits, and needs no memory that was not allocated before: room for more
  /// objects is made while half of it is left. Only if that has failed for all objects of the other
  /// half, and no other stripe has room, the object is given up: it is never disposed of. So it
  /// must belong to something, as an arena, that is released as a whole; others are Retirable.
  void retire(void* object, Dispose dispose, void* context) noexcept;

  /// Retires an object that is Retirable: it needs no memory, and is never given up.
  void retire(Retirable& object, Disposer& disposer) noexcept;

  /// Retires an object from operator new, which is deleted after the grace period.
  template <std::derived_from<Retirable> Object>
  void retire(Object* object) noexcept {
    static constinit Deleter<Object> deleter;
    retire(*object, deleter);
  }

  // Those that wait never do so in a Guard, which they would wait for: then they return false, and
  // nothing has happened.

  /// Waits for one grace period, then disposes of what had been retired before the call. Allocates
  /// nothing that it can't do without.
  bool advance();

  /// Waits until everything that was retired before the call has been disposed of.
  bool drain() { return advance(); }

  /// Waits until every ticket that was handed out before the call has passed; returns immediately
  /// if all have.
  bool settle();

  /// drain() for destructors of what retired objects lie in or return to. No Guard may be held by
  /// this thread. (None is while the library calls code of its users.)
  void drain_for_good();

  /// Retired and not yet taken up by a grace period; a moment's view.
  std::size_t pending() const;

 private:
  struct Retired {
    void* object;
    void* context;
    Dispose dispose;
  };
  struct alignas(util::kCacheLine) Stripe {
    mutable util::SpinLock lock;
    std::vector<Retired> retired;         // guarded by lock; has room
    std::vector<Retired> due;             // guarded by advancing_
    Retirable* retirables = nullptr;      // guarded by lock
    std::size_t count = 0;                // of that list; guarded by lock
    Retirable* due_retirables = nullptr;  // guarded by advancing_
  };

  static bool add(std::vector<Retired>& list, const Retired& retired) noexcept;
  static void dispose_of_list(Retirable* first) noexcept;
  void take_pending() noexcept;
  void dispose_of_due() noexcept;
  bool work_requested() const noexcept;
  void run();

  std::array<Stripe, util::kStripes> stripes_;
  alignas(util::kCacheLine) std::atomic<Ticket> started_{0};
  std::atomic<Ticket> completed_{0};
  std::atomic<Ticket> requested_{0};  // the largest ticket that was handed out
  std::mutex advancing_;

  std::mutex sleep_mutex_;  // guards stopping_, and the sleep on wake_
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;  // last: uses all of the above; none without background
};

/// A member behind those whose memory retired objects lie in or return to: when it ends, all that
/// was retired has been disposed of.
class DrainFirst {
 public:
  explicit DrainFirst(Reclaimer& reclaimer) noexcept : reclaimer_(reclaimer) {}
  DrainFirst(const DrainFirst&) = delete;
  DrainFirst& operator=(const DrainFirst&) = delete;
  ~DrainFirst() { reclaimer_.drain_for_good(); }

 private:
  Reclaimer& reclaimer_;
};

}  // namespace perdix::detail::epoch
