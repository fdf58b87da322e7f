#include "pm/drainer.h"

#include <cassert>
#include <cerrno>
#include <exception>

#include "util/signals.h"

namespace perdix::detail::pm {

int Drainer::Device::sync(void* begin, std::size_t bytes) noexcept {
  if (drainer_.given_up_.load(std::memory_order_relaxed)) return ECANCELED;
  return drainer_.device_->sync(begin, bytes);
}

bool Drainer::begin() noexcept {
  if (device_ == nullptr) return false;
  const std::lock_guard lock(mutex_);
  assert(!begun_);
  if (stopping_) return false;
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  } catch (const std::exception&) {
    return false;  // no thread, or no memory for one
  }
  begun_ = true;
  wake_.notify_one();
  return true;
}

int Drainer::wait() noexcept {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return !begun_; });
  return error();
}

void Drainer::end() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

/// The thread. Work that was begun before end() is done.
void Drainer::run() noexcept {
  util::block_signals();
  Device device(*this);
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || begun_; });
    if (!begun_) return;
    lock.unlock();
    const int error = drain_(device);
    if (error != 0) error_.store(error, std::memory_order_release);
    lock.lock();
    begun_ = false;
    ended_.notify_all();
  }
}

}  // namespace perdix::detail::pm
