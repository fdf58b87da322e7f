#include "testing/linearizability/scheduler.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "util/test_threads.h"

namespace perdix::testing {

namespace {

/// The calling thread runs nowhere else from now on. That costs time where it fails, and no more.
void stay_on(int processor) {
  if (processor < 0) return;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<unsigned>(processor), &only);
  (void)::sched_setaffinity(0, sizeof only, &only);
}

}  // namespace

Scheduler::Scheduler(unsigned threads, std::uint64_t seed, std::uint64_t expected_points)
    : processor_(::sched_getcpu()), threads_(threads), random_(seed) {
  if (random_.one_in(2)) {
    one_in_ = std::uint64_t{1} << random_.below(6);
    return;
  }
  for (Thread& thread : threads_) thread.priority = static_cast<std::int64_t>(random_() >> 1);
  const std::uint64_t count = 1 + random_.below(6);
  for (std::uint64_t i = 0; i < count; ++i) changes_.insert(random_.below(expected_points));
}

void Scheduler::join(unsigned number) {
  stay_on(processor_);
  std::unique_lock lock(mutex_);
  Thread& self = threads_[number];
  self.id = std::this_thread::get_id();
  self.system_id = ::gettid();
  self.clock = detail::util::clock_of(::pthread_self());
  self.active = true;
  if (++joined_ == threads_.size()) choose(nullptr);
  park(lock, self);
}

void Scheduler::leave(unsigned number) {
  std::unique_lock lock(mutex_);
  Thread& self = threads_[number];
  self.active = false;
  for (Thread& thread : threads_) thread.waits = false;
  if (current_ == &self) choose(&self);
  if (++left_ == threads_.size()) ended_.notify_all();
  unlock_and_wake(lock);
}

Scheduler::Thread* Scheduler::find_self() {
  const auto found = std::ranges::find(threads_, std::this_thread::get_id(), &Thread::id);
  return found != threads_.end() && found->active ? &*found : nullptr;
}

void Scheduler::point() {
  std::unique_lock lock(mutex_);
  if (Thread* self = find_self()) arrive(lock, *self);
}

void Scheduler::point_between() {
  std::unique_lock lock(mutex_);
  Thread* self = find_self();
  if (self == nullptr) return;
  for (Thread& thread : threads_) thread.waits = false;
  arrive(lock, *self);
}

void Scheduler::await_turn() {
  std::unique_lock lock(mutex_);
  Thread* self = find_self();
  if (self == nullptr || current_ == self) return;
  self->waits = self->asleep = false;
  park(lock, *self);
}

void Scheduler::yield() {
  std::unique_lock lock(mutex_);
  Thread* self = find_self();
  if (self == nullptr) return;
  self->asleep = false;
  if (current_ == self) {
    self->waits = true;
    choose(self);
  }
  park(lock, *self);
}

void Scheduler::stay(std::uint64_t points) {
  std::unique_lock lock(mutex_);
  Thread* self = find_self();
  if (self == nullptr) return;
  self->waits = self->asleep = false;
  if (current_ == self) {
    self->stays_until = points_ + points;
    choose(self);
  }
  park(lock, *self);
}

void Scheduler::arrive(std::unique_lock<std::mutex>& lock, Thread& self) {
  self.waits = self.asleep = false;
  if (current_ == &self) {
    if (++points_ == action_at_) action_();
    if (passes_on()) choose(&self);
  }
  park(lock, self);
}

void Scheduler::at_point(std::uint64_t point, std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  action_at_ = point;
  action_ = std::move(action);
}

void Scheduler::pass_for_good_after(std::uint64_t points) {
  const std::lock_guard lock(mutex_);
  last_change_ = points_ + 1 + points;
}

std::uint64_t Scheduler::points() const {
  const std::lock_guard lock(mutex_);
  return points_;
}

std::uint64_t Scheduler::takings() const {
  const std::lock_guard lock(mutex_);
  return takings_;
}

/// Whether the turn leaves the current thread at this point.
bool Scheduler::passes_on() {
  if (last_change_ && points_ >= *last_change_) return points_ == *last_change_;
  return one_in_ ? random_.one_in(*one_in_) : changes_.contains(points_);
}

/// The threads that may have the turn instead of `from`: those that stay where they are only if
/// there are no others, those that wait only then, and those that sleep last, if `from` can't go on
/// itself. They need no turn to come to their next point once they are woken.
std::vector<Scheduler::Thread*> Scheduler::candidates(const Thread* from) {
  std::vector<Thread*> found;
  const bool goes_on = from != nullptr && from->active && !from->waits;
  for (unsigned reluctance = 0; reluctance <= (goes_on ? 2 : 3); ++reluctance) {
    for (Thread& thread : threads_) {
      const unsigned its = thread.asleep                  ? 3
                           : thread.waits                 ? 2
                           : thread.stays_until > points_ ? 1
                                                          : 0;
      if (thread.active && &thread != from && its == reluctance) found.push_back(&thread);
    }
    if (!found.empty()) break;
  }
  return found;
}

/// Gives the turn to another thread than `from`, if there is one.
void Scheduler::choose(Thread* from) {
  const std::vector<Thread*> others = candidates(from);
  if (from != nullptr) from->priority = --lowest_;
  if (others.empty()) {
    current_ = from != nullptr && from->active ? from : nullptr;
  } else if (one_in_) {
    current_ = others[random_.below(others.size())];
  } else {
    current_ = *std::ranges::max_element(others, {}, &Thread::priority);
  }
  to_wake_ = current_ != nullptr && current_->parked ? current_ : nullptr;
}

/// Without the lock, or the thread that is woken would meet it.
void Scheduler::unlock_and_wake(std::unique_lock<std::mutex>& lock) {
  Thread* const next = std::exchange(to_wake_, nullptr);
  lock.unlock();
  if (next != nullptr) next->wake_up.send();
}

/// Returns when the calling thread has the turn.
void Scheduler::park(std::unique_lock<std::mutex>& lock, Thread& self) {
  self.parked = true;
  while (current_ != &self) {
    unlock_and_wake(lock);
    self.wake_up.await();
    lock.lock();
  }
  self.parked = false;
}

void Scheduler::watch() {
  std::unique_lock lock(mutex_);
  struct Look {
    const Thread* current = nullptr;
    std::uint64_t points = 0;
    bool operator==(const Look&) const = default;
  } last;
  std::chrono::nanoseconds began{0};  // the processor time of the current thread at that look
  bool ran = false, asleep = false;
  while (left_ < threads_.size()) {
    const Look now{current_, points_};
    // One that is parked was given the turn, and has not run since.
    const bool runs = current_ != nullptr && !current_->parked;
    const pid_t thread = runs ? current_->system_id : 0;
    const clockid_t clock = runs ? current_->clock : clockid_t{};
    // Not with the lock, or the thread may be found asleep that waits for it.
    lock.unlock();
    const bool sleeps = runs && detail::util::is_asleep(thread);
    const auto used = runs ? detail::util::processor_time(clock) : began;
    lock.lock();
    const bool stands = now == last && now == Look{current_, points_};
    if (!stands || !ran) began = used;
    if (current_ != nullptr && stands && ((asleep && sleeps) || used - began >= kPatience)) {
      current_->waits = true;
      current_->asleep = sleeps;
      ++takings_;
      choose(current_);
      unlock_and_wake(lock);
      lock.lock();
    }
    last = now;
    ran = runs;
    asleep = sleeps;
    ended_.wait_for(lock, kLook);
  }
}

}  // namespace perdix::testing
