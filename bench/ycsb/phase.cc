#include "ycsb/phase.h"

#include <algorithm>
#include <barrier>
#include <future>
#include <thread>

namespace perdix::bench {
namespace {

// The progress of one thread, in a separate cache line.
struct alignas(64) Mark {
  std::atomic<std::uint64_t> done = 0;
};

// Waits for all shares and shows their progress.
std::vector<ShareResult> collect(std::vector<std::future<ShareResult>>& futures,
                                 const std::vector<Mark>& marks, const PhaseOptions& options) {
  constexpr auto kInterval = std::chrono::milliseconds(100);
  for (auto& future : futures) {
    while (options.on_progress && future.wait_for(kInterval) != std::future_status::ready) {
      std::uint64_t done = 0;
      for (const Mark& mark : marks) done += mark.done.load(std::memory_order_relaxed);
      options.on_progress(done);
    }
    future.wait();
  }
  std::vector<ShareResult> results;
  for (auto& future : futures) results.push_back(future.get());
  return results;
}

PhaseResult combine(const std::vector<ShareResult>& shares) {
  PhaseResult result;
  Clock::time_point begin = shares.front().begin;
  Clock::time_point end = shares.front().end;
  for (const ShareResult& share : shares) {
    begin = std::min(begin, share.begin);
    end = std::max(end, share.end);
    result.done += share.done;
    result.wrong += share.wrong;
    result.checksum += share.checksum;
    result.latency.merge(share.latency);
  }
  result.seconds = std::chrono::duration<double>(end - begin).count();
  return result;
}

}  // namespace

PhaseResult run_phase(std::span<Store* const> stores, const std::vector<std::span<const Op>>& plan,
                      const PhaseOptions& options) {
  std::vector<Mark> marks(plan.size());
  std::barrier start(static_cast<std::ptrdiff_t>(plan.size()));
  std::vector<std::packaged_task<ShareResult()>> tasks;
  std::vector<std::future<ShareResult>> futures;
  for (std::size_t t = 0; t < plan.size(); ++t) {
    tasks.emplace_back([&, t] {
      // A thread that fails before it is ready must not block the others.
      bool arrived = false;
      const Share share{plan[t],      options.seed + t, options.sample_every,
                        options.stop, &marks[t].done,   options.meter};
      try {
        return stores[t % stores.size()]->run(share, [&] {
          arrived = true;
          start.arrive_and_wait();
        });
      } catch (...) {
        if (!arrived) start.arrive_and_drop();
        throw;
      }
    });
    futures.push_back(tasks.back().get_future());
  }
  const auto collected = [&] { return combine(collect(futures, marks, options)); };
  // A thread's number decides where it allocates in a pool. A single thread is therefore the one
  // that opened the system, so that a meter counts the same in every run.
  if (options.meter != nullptr && tasks.size() == 1) {
    auto result = std::async(std::launch::async, collected);
    tasks.front()();
    return result.get();
  }
  std::vector<std::jthread> threads;
  for (auto& task : tasks) threads.emplace_back(std::move(task));
  return collected();
}

}  // namespace perdix::bench
