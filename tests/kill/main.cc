// Kills real processes at random moments and verifies their pools. See usage().
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "kill/child.h"
#include "kill/lane.h"
#include "support/engines.h"
#include "support/settings.h"

namespace perdix::test::kill {
namespace {

constexpr std::string_view kUsage =
    R"(perdix_kill: runs workloads in processes that are killed, and verifies what they leave.

  --kills N      at least N kills in total (default 60)
  --seconds S    at least S seconds (default 0)
  --jobs J       work on J pools at a time (default 1)
  --seed S       seed of every random choice but the moments of the kills (default PERDIX_SEED)
  --engine E     only this engine or workload (elf, elf_table, tips_of:...), or all whose names
                 begin with E and a colon (default: all)
  --kinds K      only these kinds: u64_u64, u64_bytes, bytes_u64 or bytes_bytes (default: all)
  --domain D     only this domain: process, memory_controller or page_cache (default: all)
  --mode M       only this mode: alone, apart or together (default: all)
)";

struct Setting {
  Mode mode;
  unsigned threads;
  Domain domain;
};

constexpr std::array kSettings = {
    Setting{Mode::apart, 3, Domain::process},
    Setting{Mode::together, 3, Domain::process},
    Setting{Mode::alone, 1, Domain::process},
    Setting{Mode::apart, 2, Domain::memory_controller},
    Setting{Mode::together, 4, Domain::memory_controller},
    Setting{Mode::apart, 2, Domain::page_cache},
};

/// Whether an option asks for `name`, or for nothing.
bool wanted(const Options& options, std::string_view option, std::string_view name) {
  return options.text(option, name) == name;
}

bool wanted(const Options& options, const Plan& plan) {
  return (wanted(options, "engine", plan.engine) ||
          plan.engine.starts_with(options.text("engine") + ":")) &&
         wanted(options, "kinds", plan.kinds) && wanted(options, "domain", name_of(plan.domain)) &&
         wanted(options, "mode", name_of(plan.mode));
}

std::vector<std::unique_ptr<Lane>> make_lanes(const Options& options, std::uint64_t seed) {
  std::vector<std::unique_ptr<Lane>> lanes;
  for (const IndexType& type : killed_types()) {
    for (const Setting& setting : kSettings) {
      const Plan plan = {type.name,    type.kinds(),    setting.domain,
                         setting.mode, setting.threads, seed};
      if (wanted(options, plan)) lanes.push_back(std::make_unique<Lane>(plan));
    }
  }
  for (const WorkloadEntry& entry : workloads()) {
    for (const Domain domain : kAllDomains) {
      const Plan plan = {entry.name, "", domain, Mode::alone, 1, seed};
      if (wanted(options, plan)) lanes.push_back(std::make_unique<Lane>(plan));
    }
  }
  return lanes;
}

void report_failure(const Lane& lane, const char* program, std::uint64_t kills) {
  const Plan& plan = lane.plan();
  for (const std::string& problem : lane.problems()) fmt::print("FAILED: {}\n", problem);
  fmt::print("replay: {} --seed {} --engine '{}' --kinds '{}' --domain {} --mode {} --kills {}\n",
             program, plan.seed, plan.engine, plan.kinds, name_of(plan.domain), name_of(plan.mode),
             std::max<std::uint64_t>(100, kills));
}

void report(const std::vector<std::unique_ptr<Lane>>& lanes, double seconds) {
  Tally sum;
  for (const auto& lane : lanes) sum.add(lane->tally());
  fmt::print(
      "{} kills, {} of them during open or recovery; {} verifications, {} operations "
      "acknowledged, slowest reopen {:.1f} ms, {:.1f} s\n",
      sum.kills, sum.kills_in_open, sum.verifications, sum.acknowledged,
      static_cast<double>(sum.slowest_open.count()) / 1e6, seconds);
}

/// Kills in all lanes, several at a time, until there were enough kills and enough time went by.
class Campaign {
 public:
  Campaign(const Options& options, std::vector<std::unique_ptr<Lane>>& lanes)
      : lanes_(lanes),
        kills_(options.number("kills", scaled(60))),
        seconds_(static_cast<double>(options.number("seconds", 0))),
        jobs_(std::clamp<std::size_t>(options.number("jobs", 1), 1, lanes.size())) {}

  /// False if a lane has problems.
  bool run() {
    std::vector<std::thread> threads;
    for (std::size_t job = 0; job < jobs_; ++job) threads.emplace_back([this, job] { work(job); });
    for (std::thread& thread : threads) thread.join();
    for (auto& lane : lanes_) ok_ = ok_ && lane->finish();
    return ok_;
  }

  std::uint64_t kills() const { return done_; }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  static constexpr std::uint64_t kKillsPerReport = 1000;

  /// Each lane belongs to one job.
  void work(std::size_t job) {
    for (std::size_t i = job; ok_ && (done_ < kills_ || seconds() < seconds_);) {
      Lane& lane = *lanes_[i];
      const std::uint64_t before = lane.tally().kills;
      if (!lane.run_round()) ok_ = false;
      count(lane.tally().kills - before);
      i = i + jobs_ < lanes_.size() ? i + jobs_ : job;
    }
  }

  void count(std::uint64_t kills) {
    const std::uint64_t before = done_.fetch_add(kills);
    if (before / kKillsPerReport == (before + kills) / kKillsPerReport) return;
    fmt::print("... {} kills in {:.0f} s\n", before + kills, seconds());
    std::fflush(stdout);
  }

  std::vector<std::unique_ptr<Lane>>& lanes_;
  const std::uint64_t kills_;
  const double seconds_;
  const std::size_t jobs_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> ok_{true};
};

int run(const Options& options, const char* program) {
  const std::uint64_t seed = options.number("seed", test::seed());
  auto lanes = make_lanes(options, seed);
  if (lanes.empty()) throw std::invalid_argument("no engine, kinds, domain and mode fit");
  fmt::print("seed {}, {} pools\n", seed, lanes.size());
  Campaign campaign(options, lanes);
  const bool ok = campaign.run();
  for (const auto& lane : lanes) {
    if (!lane->problems().empty()) report_failure(*lane, program, campaign.kills());
  }
  report(lanes, campaign.seconds());
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace perdix::test::kill

int main(int argc, char** argv) {
  using namespace perdix::test::kill;
  try {
    const perdix::test::Options options(argc, argv);
    return options.text("role").empty() ? run(options, argv[0]) : run_child(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n\n{}", error.what(), kUsage);
    return 2;
  }
}
