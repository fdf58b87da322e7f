#include "special/nbtree/handover.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace perdix::bench::figures {
namespace {

std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void move_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace

double handover_nanoseconds() {
  constexpr auto kTime = std::chrono::milliseconds(10);
  const std::vector<int> cpus = usable_cpus();
  if (cpus.size() < 2) return 0;
  struct alignas(128) Turn {
    std::atomic<std::uint64_t> number{0};
  } turn;
  struct alignas(128) End {
    std::atomic<bool> reached{false};
  } end;
  const auto take_turns = [&](unsigned thread) {
    move_to(cpus[thread]);
    for (std::uint64_t mine = thread;; mine += 2) {
      while (turn.number.load(std::memory_order_acquire) != mine) {
        if (end.reached.load(std::memory_order_relaxed)) return;
      }
      turn.number.store(mine + 1, std::memory_order_release);
    }
  };
  std::jthread odd(take_turns, 1);
  const auto begin = std::chrono::steady_clock::now();
  std::jthread even(take_turns, 0);
  std::this_thread::sleep_for(kTime);
  const std::uint64_t turns = turn.number.load(std::memory_order_relaxed);
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - begin;
  end.reached.store(true, std::memory_order_relaxed);
  return elapsed.count() / static_cast<double>(std::max<std::uint64_t>(turns, 1));
}

}  // namespace perdix::bench::figures
