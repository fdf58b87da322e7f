#include "index/tips/workers.h"

#include <algorithm>
#include <exception>

#include "util/signals.h"

namespace perdix::detail::index::tips {

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::run(unsigned count, const std::function<void(unsigned)>& task) {
  start(count - 1);
  const unsigned helpers = std::min(count - 1, static_cast<unsigned>(threads_.size()));
  {
    const std::lock_guard lock(mutex_);
    task_ = &task;
    ++round_;
    threads_of_round_ = left_ = helpers;
  }
  begun_.notify_all();
  task(0);
  for (unsigned i = helpers + 1; i < count; ++i) task(i);
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return left_ == 0; });
}

/// As many as are available.
void Workers::start(unsigned threads) noexcept try {
  while (threads_.size() < threads) {
    const auto number = static_cast<unsigned>(threads_.size()) + 1;
    threads_.emplace_back([this, number] { work(number); });
  }
} catch (const std::exception&) {  // no memory, or no thread
}

void Workers::work(unsigned number) {
  util::block_signals();
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    begun_.wait(lock, [&] { return stopping_ || round_ != seen; });
    if (stopping_) return;
    seen = round_;
    if (number > threads_of_round_) continue;
    const auto& task = *task_;
    lock.unlock();
    task(number);
    lock.lock();
    if (--left_ == 0) ended_.notify_one();
  }
}

}  // namespace perdix::detail::index::tips
