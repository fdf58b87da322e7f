#include "experiments/measure.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "common/place.h"

namespace perdix::bench {
namespace {

Restart reopen(Bench& bench, const System& system, const Setup& setup, std::uint64_t records) {
  std::vector<Op> gets(records);
  for (std::uint64_t n = 0; n < records; ++n)
    gets[n] = {n, 0, static_cast<std::uint64_t>(OpKind::get)};
  const std::span<const Op> all = gets;
  const Clock::time_point begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const std::unique_ptr<Store> store = system.open(setup);
  Restart restart;
  bench.wrong += store->run({all.subspan(records / 2, 1), 0, 1, nullptr, nullptr}, [] {}).wrong;
  restart.first_answer = elapsed();
  store->resume();
  restart.resumed = elapsed();
  bench.wrong += store->run({all, 0, 1024, nullptr, nullptr}, [] {}).wrong;
  return restart;
}

}  // namespace

double throughput(const PhaseResult& result) {
  return static_cast<double>(result.done) / std::max(result.seconds, 1e-9);
}

double ratio(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
}

std::string threads_text(std::uint64_t threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

Restart restart_after_kill(Bench& bench, const System& system, Setup setup, std::uint64_t records) {
  const ScratchDirectory directory(bench.parent);
  setup.directory = directory.path();
  setup.data.seed = bench.seed;
  setup.max_records = records;
  if (bench.on_progress) bench.on_progress(system, find_workload("reopen"), 1, 0, records);
  bench.crasher.load_and_kill(system.name, setup, records, bench.seed);
  return reopen(bench, system, setup, records);
}

}  // namespace perdix::bench
