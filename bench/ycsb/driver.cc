#include "ycsb/driver.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "common/environment.h"
#include "common/place.h"
#include "common/require.h"
#include "systems/systems.h"
#include "ycsb/trial.h"

namespace perdix::bench {
namespace {

std::uint64_t share_of(std::uint64_t operations, const Workload& workload, OpKind kind) {
  return operations * workload.share(kind) / 100;
}

// An upper bound of the number of records in an index: shares are drawn at random.
std::uint64_t max_records(const Config& config, const std::vector<const Workload*>& workloads) {
  std::uint64_t total = config.records;
  for (const Workload* workload : workloads) {
    if (workload->phase == PhaseKind::mix)
      total += 2 * (share_of(config.operations, *workload, OpKind::insert) +
                    share_of(config.operations, *workload, OpKind::insert_ahead));
  }
  return total;
}

// `load` comes first. It is added if it was not asked for, unless only reopening is measured.
std::vector<const Workload*> choose_workloads(const Config& config) {
  std::vector<const Workload*> chosen;
  bool needs_load = false;
  for (const std::string& name : config.workloads) {
    const Workload& workload = find_workload(name);
    needs_load |= workload.phase != PhaseKind::reopen;
    if (workload.phase != PhaseKind::load) chosen.push_back(&workload);
  }
  if (needs_load) chosen.insert(chosen.begin(), &find_workload("load"));
  return chosen;
}

void require_all_can(const Config& config, const std::vector<const Workload*>& workloads) {
  for (const std::string& name : config.systems) {
    for (const Workload* workload : workloads) {
      for (const unsigned threads : config.threads) {
        const auto reason = why_not(find_system(name), *workload, threads);
        require(!reason, reason.value_or(""));
      }
    }
  }
}

bool reopens(const Workload* workload) { return workload->phase == PhaseKind::reopen; }

class Driver {
 public:
  explicit Driver(const Config& config)
      : config_(config),
        workloads_((validate(config), choose_workloads(config))),
        max_records_((require_all_can(config, workloads_), max_records(config, workloads_))),
        scratch_(config.parent(needed_space())),
        bench_{config, scratch_.path(), Planner(std::max(config.records, config.operations))} {
    for (const std::string& name : config.systems) systems_.push_back(&find_system(name));
    if (std::ranges::any_of(workloads_, reopens)) bench_.crasher = &crasher_.emplace();
    bench_.sample_every = config.sample_every;
    bench_.warm_memory = config.warm_memory;
    bench_.phases = config.repeat * config.threads.size() * systems_.size() * workloads_.size();
    results_.config = config;
    results_.environment = environment_of(scratch_.path());
    results_.durability = resolve_durability();
    results_.clock_nanoseconds = clock_cost_nanoseconds();
  }

  Results run() {
    for (std::uint64_t round = 0; round < config_.repeat; ++round) {
      for (const unsigned threads : config_.threads) {
        // Each round begins with a different system, so that no system always runs first.
        for (std::size_t i = 0; i < systems_.size(); ++i)
          run_system(*systems_[(i + round) % systems_.size()], threads);
      }
    }
    return std::move(results_);
  }

 private:
  // The competitors' files are several times the data.
  std::uint64_t needed_space() const {
    constexpr std::uint64_t kFixed = 512 << 20;
    return kFixed + max_records_ * 8 * (config_.data.shape.pair_size() + 16);
  }

  // The durability that a pool chooses for `automatic` on this file system applies to all systems.
  Durability resolve_durability() const {
    if (config_.durability != Durability::automatic) return config_.durability;
    const ScratchDirectory directory(scratch_.path());
    PoolOptions options;
    options.domain = config_.domain;
    return Pool::create(directory.path() / "probe.pool", options).info().durability;
  }

  Setup setup_of(unsigned threads) const {
    return {config_.data,
            {},
            max_records_,
            threads,
            results_.durability,
            config_.domain,
            config_.dram_budget,
            config_.pool_size,
            {}};
  }

  void run_system(const System& system, unsigned threads) {
    note_settings(system, threads);
    if (workloads_.front()->phase == PhaseKind::load) run_loaded_phases(system, threads);
    for (const Workload* workload : workloads_)
      if (reopens(workload)) run_reopen(system, *workload, threads);
  }

  void note_settings(const System& system, unsigned threads) {
    for (const SystemInfo& noted : results_.systems)
      if (noted.name == system.name && noted.threads == threads) return;
    const ScratchDirectory directory(scratch_.path());
    Setup setup = setup_of(threads);
    setup.directory = directory.path();
    results_.systems.push_back(
        {system.name, system.persistent, system.summary + "; " + system.settings(setup), threads});
  }

  void run_loaded_phases(const System& system, unsigned threads) {
    Trial trial(bench_, system, setup_of(threads), 0, config_.meter);
    for (const Workload* workload : workloads_) {
      if (reopens(workload)) continue;
      const std::uint64_t operations =
          workload->phase == PhaseKind::load ? config_.records : config_.operations;
      const PhaseResult phase =
          trial.run(*workload, config_.distribution.value_or(workload->distribution), operations);
      Result& result = result_of(system, *workload, threads);
      result.rounds.push_back(
          {phase.seconds, phase.done, phase.wrong, phase.checksum, trial.footprint(), {}});
      result.latency.merge(phase.latency);
      add_counts(result.counts, phase.counts);
      ++bench_.phase;
    }
  }

  void run_reopen(const System& system, const Workload& workload, unsigned threads) {
    if (system.persistent) {
      Round round;
      round.reopened = reopen_after_kill(bench_, system, setup_of(threads), config_.records);
      result_of(system, workload, threads).rounds.push_back(round);
    }
    ++bench_.phase;
  }

  Result& result_of(const System& system, const Workload& workload, unsigned threads) {
    for (Result& result : results_.results) {
      if (result.system == system.name && result.workload == workload.name &&
          result.threads == threads)
        return result;
    }
    Result result;
    result.system = system.name;
    result.workload = workload.name;
    result.threads = threads;
    results_.results.push_back(std::move(result));
    return results_.results.back();
  }

  static void add_counts(std::vector<Count>& totals, const std::vector<Count>& more) {
    for (const Count& count : more) {
      const auto found = std::ranges::find_if(totals, [&](const Count& total) {
        return total.operation == count.operation && total.name == count.name;
      });
      if (found == totals.end()) {
        totals.push_back(count);
      } else {
        found->value += count.value;
        found->operations += count.operations;
      }
    }
  }

  const Config& config_;
  std::vector<const Workload*> workloads_;
  std::uint64_t max_records_;
  ScratchDirectory scratch_;
  std::optional<Crasher> crasher_;  // forks
  Bench bench_;
  std::vector<const System*> systems_;
  Results results_;
};

}  // namespace

void validate(const Config& config) {
  require(!config.systems.empty(), "name at least one system");
  require(!config.workloads.empty(), "name at least one workload");
  require(!config.threads.empty(), "name at least one number of threads");
  require(config.records > 0 && config.records < (std::uint64_t{1} << 40),
          "records must be between 1 and 2^40");
  require(config.operations > 0 && config.operations < (std::uint64_t{1} << 40),
          "operations must be between 1 and 2^40");
  require(config.repeat > 0, "repeat must be at least 1");
  require(config.sample_every > 0, "the sampling interval must be at least 1");
  for (const unsigned threads : config.threads)
    require(threads > 0 && threads <= 1024, "threads: 1 to 1024");
  const Shape& shape = config.data.shape;
  require(shape.key_kind == Kind::u64 || shape.key_size >= kMinByteKeySize,
          fmt::format("byte keys must have at least {} bytes", kMinByteKeySize));
  require(shape.key_size <= kMaxKeySize, fmt::format("keys have at most {} bytes", kMaxKeySize));
}

Results measure(const Config& config) { return Driver(config).run(); }

}  // namespace perdix::bench
