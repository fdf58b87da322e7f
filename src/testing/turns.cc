#include "testing/turns.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>

#include "util/test_threads.h"

namespace perdix::testing {
Turns::Turns(unsigned threads, std::uint64_t seed, std::uint64_t one_in)
    : random_(seed),
      one_in_(one_in),
      active_(threads, true),
      waiting_(threads, false),
      identities_(threads) {
  current_ = static_cast<unsigned>(random_.below(threads));
}

void Turns::event(unsigned thread, At at) {
  std::unique_lock lock(mutex_);
  ++events_;
  if (identities_[thread].id == 0) identities_[thread] = this_thread();
  const std::uint64_t one_in = at == At::persist ? std::min<std::uint64_t>(one_in_, 2) : one_in_;
  if (current_ == thread && random_.one_in(one_in)) pass_on(thread);
  wait(lock, thread);
  storing_ = at == At::store;
}

void Turns::yield(unsigned thread) {
  std::unique_lock lock(mutex_);
  if (current_ == thread) pass_on(thread);
  wait(lock, thread);
}

void Turns::done(unsigned thread) {
  const std::lock_guard lock(mutex_);
  if (current_ == thread) storing_ = false;
}

void Turns::leave(unsigned thread) {
  const std::lock_guard lock(mutex_);
  active_[thread] = false;
  if (current_ == thread) pass_on(thread);
}

void Turns::pass_on(unsigned thread) {
  std::vector<unsigned> others;
  for (unsigned i = 0; i < active_.size(); ++i) {
    if (i != thread && active_[i]) others.push_back(i);
  }
  if (others.empty()) return;
  current_ = others[random_.below(others.size())];
  changed_.notify_all();
}

Turns::Identity Turns::this_thread() {
  return {::gettid(), detail::util::clock_of(::pthread_self())};
}

Turns::Holder Turns::look() const {
  const Identity& identity = identities_[current_];
  if (identity.id == 0) return {current_, events_};
  return {current_, events_, detail::util::processor_time(identity.clock),
          detail::util::is_asleep(identity.id)};
}

/// Whether it waits for a lock of ours, or of another thread that waits here.
bool Turns::stuck(const Holder& before, const Holder& now) const {
  if (!now.same_as(before) || storing_ || waiting_[current_]) return false;
  return (before.asleep && now.asleep) || now.processor - before.processor >= kPatience;
}

void Turns::wait(std::unique_lock<std::mutex>& lock, unsigned thread) {
  if (current_ == thread) return;  // most events: to look at the holder costs a system call
  waiting_[thread] = true;
  for (Holder before = look(); current_ != thread;) {
    changed_.wait_for(lock, kPatience, [&] { return current_ == thread; });
    const Holder now = look();
    if (stuck(before, now)) pass_on(current_);
    // The processor time is counted from the last event.
    if (!now.same_as(before) || now.asleep != before.asleep) before = now;
  }
  waiting_[thread] = false;
}

}  // namespace perdix::testing
