#include "epoch/reclaimer.h"

#include <cassert>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <urcu/urcu-bp.h>

#include <perdix/error.h>

#include "epoch/guard.h"
#include "util/signals.h"

namespace perdix::detail::epoch {
namespace {

// A grace period interrupts every core that runs a thread of this process. Under a steady stream of
// retired objects this pause makes one period serve all that comes within it.
constexpr auto kPause = std::chrono::milliseconds(1);

constexpr std::size_t kRoom = 32;               // of a stripe, from the beginning on
constexpr std::size_t kMaxKeptCapacity = 4096;  // of a stripe's room, when nothing is retired

/// liburcu blocks all signals of the thread in here, so this must not take long. It does not: it
/// waits for Guards only, and each of them ends with the call of the library that holds it, in
/// which no code of a user runs. (A process that is stopped, or one whose disk does not answer an
/// msync, has its signals pending until that is over.)
void wait_for_readers() {
  urcu_bp_synchronize_rcu();
  tsan::acquire(&urcu_bp_gp);
}

}  // namespace

Reclaimer::Reclaimer(bool background) {
  for (Stripe& stripe : stripes_) {
    stripe.retired.reserve(kRoom);
    stripe.due.reserve(kRoom);
  }
  if (!background) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw Error(Errc::no_threads,
                fmt::format("can't start a thread ({}); every open pool needs one: raise the limit "
                            "of processes (ulimit -u, or pids.max of the control group), or of "
                            "locked memory (ulimit -l) after mlockall()",
                            error.what()));
  }
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
  const std::size_t own = util::current_stripe();
  for (std::size_t i = 0; i < util::kStripes; ++i) {
    Stripe& stripe = stripes_[(own + i) % util::kStripes];
    const std::lock_guard guard(stripe.lock);
    if (add(stripe.retired, {object, context, dispose})) break;
  }
  ticket();  // only for its request: a period that starts from now on takes the object along
}

void Reclaimer::retire(Retirable& object, Disposer& disposer) noexcept {
  {
    Stripe& stripe = stripes_[util::current_stripe()];
    const std::lock_guard guard(stripe.lock);
    object.disposer = &disposer;
    object.next_retired = stripe.retirables;
    stripe.retirables = &object;
    ++stripe.count;
  }
  ticket();  // as above
}

/// Makes room while half of it is left, so that a shortage of memory may pass before it is needed.
/// False if there is none.
bool Reclaimer::add(std::vector<Retired>& list, const Retired& retired) noexcept {
  if (2 * list.size() >= list.capacity()) {
    try {
      list.reserve(2 * list.capacity());
    } catch (const std::bad_alloc&) {
      // The next one tries again.
    }
  }
  if (list.size() == list.capacity()) return false;
  list.push_back(retired);
  return true;
}

bool Reclaimer::advance() {
  if (Guard::held()) return false;
  const std::lock_guard guard(advancing_);
  take_pending();
  const Ticket period = started_.load(std::memory_order_relaxed) + 1;
  started_.store(period, std::memory_order_seq_cst);
  wait_for_readers();
  completed_.store(period, std::memory_order_release);
  dispose_of_due();
  return true;
}

void Reclaimer::dispose_of_due() noexcept {
  for (Stripe& stripe : stripes_) {
    for (const Retired& retired : stripe.due) retired.dispose(retired.object, retired.context);
    stripe.due.clear();
    dispose_of_list(std::exchange(stripe.due_retirables, nullptr));
    if (stripe.due.capacity() <= kMaxKeptCapacity) continue;
    try {
      std::vector<Retired> smaller;
      smaller.reserve(kRoom);
      stripe.due.swap(smaller);
    } catch (const std::bad_alloc&) {
      // Then it stays large.
    }
  }
}

void Reclaimer::dispose_of_list(Retirable* first) noexcept {
  for (Retirable* next = nullptr; first != nullptr; first = next) {
    next = first->next_retired;
    first->disposer->dispose(*first);
  }
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

void Reclaimer::take_pending() noexcept {
  for (Stripe& stripe : stripes_) {
    const std::lock_guard guard(stripe.lock);
    stripe.due.swap(stripe.retired);                                    // which was empty
    stripe.due_retirables = std::exchange(stripe.retirables, nullptr);  // likewise
    stripe.count = 0;
  }
}

std::size_t Reclaimer::pending() const {
  std::size_t count = 0;
  for (const Stripe& stripe : stripes_) {
    const std::lock_guard guard(stripe.lock);
    count += stripe.retired.size() + stripe.count;
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

}  // namespace perdix::detail::epoch
