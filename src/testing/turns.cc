#include "testing/turns.h"

namespace perdix::testing {

Turns::Turns(unsigned threads, std::uint64_t seed, std::uint64_t one_in)
    : random_(seed), one_in_(one_in), active_(threads, true), waiting_(threads, false) {
  current_ = static_cast<unsigned>(random_.below(threads));
}

void Turns::event(unsigned thread, bool storing) {
  std::unique_lock lock(mutex_);
  ++events_;
  if (current_ == thread && random_.one_in(one_in_)) pass_on(thread);
  wait(lock, thread);
  storing_ = storing;
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

void Turns::wait(std::unique_lock<std::mutex>& lock, unsigned thread) {
  waiting_[thread] = true;
  while (current_ != thread) {
    const std::uint64_t before = events_;
    changed_.wait_for(lock, kPatience, [&] { return current_ == thread; });
    const bool stuck = events_ == before && !storing_ && !waiting_[current_];
    if (current_ != thread &&
        stuck) {  // it waits for a lock of ours, or of another one that waits here
      current_ = thread;
      changed_.notify_all();
    }
  }
  waiting_[thread] = false;
}

}  // namespace perdix::testing
