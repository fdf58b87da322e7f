// The thread that fills a cache.
#pragma once

#include <atomic>
#include <functional>
#include <stop_token>
#include <thread>

namespace perdix::detail::index::elf {

/// start() and stop() are called by one thread at a time, and never by the work.
class Filler {
 public:
  using Work = std::function<void(const std::stop_token&)>;

  /// Ends what runs, and runs this. The work may fail, for lack of memory or on damage: then it
  /// ends, and queries do without. So they do if the system has no thread for it.
  void start(Work work);

  /// Returns soon: when the work has noticed.
  void stop();

  bool running() const { return running_.load(std::memory_order_acquire); }

  /// Returns when nothing runs.
  void wait() const { running_.wait(true, std::memory_order_acquire); }

 private:
  void end();

  std::atomic<bool> running_{false};
  std::jthread thread_;  // last: ends first
};

}  // namespace perdix::detail::index::elf
