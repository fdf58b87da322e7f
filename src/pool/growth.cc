#include "pool/growth.h"

#include <algorithm>
#include <new>
#include <system_error>

#include <perdix/error.h>

#include "pool/layout.h"
#include "util/signals.h"

namespace perdix::detail::pool {

Growth::~Growth() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Growth::take(std::uint64_t size) {
  const std::lock_guard guard(mutex_);
  if (size > mapping_.size()) make_ready(size);
  wanted_ = std::min(size + kGrowthUnit, mapping_.max_size());
  wake_thread();
}

void Growth::touch(std::uint64_t begin, std::uint64_t end) {
  const std::lock_guard guard(mutex_);
  end = std::min(end, mapping_.size());
  if (begin >= end) return;
  add_untouched({begin, end});
  wake_thread();
}

void Growth::wait_until_idle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return !thread_.joinable() || (!busy_ && !has_work()); });
}

void Growth::make_ready(std::uint64_t size) {
  const std::uint64_t before = mapping_.size();
  file_.allocate(size);
  // A superblock that says this size may reach the device only after the size itself.
  if (durable_) pm_.sync_file(file_);
  mapping_.grow(size);
  // A pool that was small until now has not been touched ahead of use (growth.h).
  add_untouched({before == kGrowthUnit ? 0 : before, size});
}

/// Touching is for speed only: without memory for the note it is left out.
void Growth::add_untouched(Range range) noexcept {
  try {
    untouched_.push_back(range);
  } catch (const std::bad_alloc&) {
  }
}

bool Growth::has_work() const { return !untouched_.empty() || wanted_ > mapping_.size(); }

void Growth::wake_thread() {
  if (thread_.joinable()) return wake_.notify_one();
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::exception&) {
    untouched_.clear();  // without the thread all works: a caller that needs space makes it ready
  }
}

void Growth::run() {
  util::block_signals();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (has_work()) {
      step(lock);
    } else {
      idle_.notify_all();
      wake_.wait(lock, [this] { return stopping_ || has_work(); });
    }
  }
  idle_.notify_all();
}

void Growth::step(std::unique_lock<std::mutex>& lock) {
  if (untouched_.empty()) {
    try {
      make_ready(wanted_);
    } catch (const std::exception&) {
      wanted_ = 0;  // a caller that needs the space tries again, and reports what is wrong
    }
    return;
  }
  Range& first = untouched_.front();
  const std::uint64_t begin = first.begin;
  const std::uint64_t end = std::min(begin + kGrowthUnit, first.end);
  first.begin = end;
  if (first.begin >= first.end) untouched_.pop_front();
  busy_ = true;
  lock.unlock();  // touching needs no lock, and takers need not wait for it
  mapping_.populate(begin, end - begin);
  lock.lock();
  busy_ = false;
}

}  // namespace perdix::detail::pool
