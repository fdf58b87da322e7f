// Interrupts threads at random instructions, for stress tests.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <thread>
#include <vector>

#include "util/random.h"

namespace perdix::detail::util {

/// By a signal whose handler lets the others do some operations. Few processors rarely stop a
/// thread between two given loads; this does it all the time. One at a time; it outlives the
/// victims' threads, since signals may be under way.
class Interrupter {
 public:
  /// Operations done by all threads: they count it up.
  static inline std::atomic<std::uint64_t> progress{0};

  explicit Interrupter(std::vector<std::thread>& victims, std::uint64_t seed)
      : victims_(victims), random_(seed) {
    struct sigaction action = {};
    action.sa_handler = let_others_work;
    sigaction(SIGUSR1, &action, &former_);
  }
  Interrupter(const Interrupter&) = delete;
  Interrupter& operator=(const Interrupter&) = delete;
  ~Interrupter() { sigaction(SIGUSR1, &former_, nullptr); }

  void run_until(const std::atomic<unsigned>& running) {
    while (running > 0) {
      pthread_kill(victims_[random_.below(victims_.size())].native_handle(), SIGUSR1);
      for (std::uint64_t i = random_.below(20); i > 0; --i) std::this_thread::yield();
    }
  }

 private:
  // The wait has a bound, since the interrupted thread may hold a lock that the others need.
  static void let_others_work(int) {
    constexpr std::uint64_t kEnough = 20;
    constexpr int kBound = 50;
    const std::uint64_t start = progress;
    for (int i = 0; i < kBound && progress < start + kEnough; ++i) sched_yield();
  }

  std::vector<std::thread>& victims_;
  Random random_;
  struct sigaction former_ = {};
};

}  // namespace perdix::detail::util
