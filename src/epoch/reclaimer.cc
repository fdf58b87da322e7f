#include "epoch/reclaimer.h"

#include <urcu/urcu-bp.h>

#include <cassert>
#include <chrono>
#include <utility>

#include "epoch/guard.h"
#include "util/signals.h"

namespace perdix::epoch {
namespace {

// A grace period interrupts every core that runs a thread of this process. Under a steady stream of
// retired objects this pause makes one period serve all that comes within it.
constexpr auto kPause = std::chrono::milliseconds(1);

void wait_for_readers() {
  urcu_bp_synchronize_rcu();
  tsan::acquire(&urcu_bp_gp);
}

}  // namespace

Reclaimer::Reclaimer(bool background) {
  if (background) thread_ = std::thread([this] { run(); });
}

Reclaimer::~Reclaimer() {
  {
    const std::lock_guard guard(sleep_mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  while (pending() > 0) drain_for_good();  // a dispose function may have retired more
}

Reclaimer::Ticket Reclaimer::ticket() {
  // The caller's unlinking must be visible to readers before started_ is read: else a period could
  // be counted whose scan of the readers came before.
  tsan::fence(std::memory_order_seq_cst);
  const Ticket ticket = started_.load(std::memory_order_acquire) + 1;
  Ticket known = requested_.load(std::memory_order_relaxed);
  while (known < ticket) {
    if (!requested_.compare_exchange_weak(known, ticket, std::memory_order_seq_cst)) continue;
    // One thread per period comes here. Passing through the mutex means that the background thread
    // either sees the request before it sleeps, or sleeps already and is woken.
    { const std::lock_guard guard(sleep_mutex_); }
    wake_.notify_one();
    break;
  }
  return ticket;
}

void Reclaimer::retire(void* object, Dispose dispose, void* context) noexcept {
  {
    Stripe& stripe = stripes_[util::current_stripe()];
    const std::lock_guard guard(stripe.lock);
    stripe.retired.push_back({object, context, dispose});
  }
  ticket();  // only for its request: a period that starts from now on takes the object along
}

bool Reclaimer::advance() {
  if (Guard::held()) return false;
  const std::lock_guard guard(advancing_);
  const std::vector<Retired> due = take_pending();
  const Ticket period = started_.load(std::memory_order_relaxed) + 1;
  started_.store(period, std::memory_order_seq_cst);
  wait_for_readers();
  completed_.store(period, std::memory_order_release);
  for (const Retired& retired : due) retired.dispose(retired.object, retired.context);
  return true;
}

bool Reclaimer::settle() {
  const Ticket last = requested_.load(std::memory_order_seq_cst);
  while (!passed(last)) {
    if (!advance()) return false;
  }
  return true;
}

void Reclaimer::drain_for_good() {
  [[maybe_unused]] const bool drained = drain();
  assert(drained && "a thread would take away what its own Guard protects");
}

std::vector<Reclaimer::Retired> Reclaimer::take_pending() {
  std::vector<Retired> all;
  for (Stripe& stripe : stripes_) {
    std::vector<Retired> taken;
    {
      const std::lock_guard guard(stripe.lock);
      taken.swap(stripe.retired);
    }
    if (all.empty()) {
      all = std::move(taken);
    } else {
      all.insert(all.end(), taken.begin(), taken.end());
    }
  }
  return all;
}

std::size_t Reclaimer::pending() const {
  std::size_t count = 0;
  for (const Stripe& stripe : stripes_) {
    const std::lock_guard guard(stripe.lock);
    count += stripe.retired.size();
  }
  return count;
}

bool Reclaimer::work_requested() const noexcept {
  return requested_.load(std::memory_order_seq_cst) > completed_.load(std::memory_order_relaxed);
}

void Reclaimer::run() {
  util::block_signals();
  std::unique_lock lock(sleep_mutex_);
  while (!stopping_) {
    wake_.wait(lock, [this] { return stopping_ || work_requested(); });
    wake_.wait_for(lock, kPause, [this] { return stopping_; });
    if (stopping_) return;
    lock.unlock();
    advance();
    lock.lock();
  }
}

}  // namespace perdix::epoch
