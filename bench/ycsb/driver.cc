#include "ycsb/driver.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "common/environment.h"
#include "common/place.h"
#include "common/require.h"
#include "systems/systems.h"
#include "ycsb/crasher.h"
#include "ycsb/memory.h"
#include "ycsb/phase.h"
#include "ycsb/plan.h"
#include "ycsb/warm_memory.h"

namespace perdix::bench {
namespace {

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::uint64_t share_of(std::uint64_t operations, const Workload& workload, OpKind kind) {
  return operations * workload.share(kind) / 100;
}

// An upper bound of the number of records in an index: shares are drawn at random.
std::uint64_t most_records(const Config& config, const std::vector<const Workload*>& workloads) {
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

class Driver {
 public:
  explicit Driver(const Config& config)
      : workloads_((validate(config), choose_workloads(config))),
        max_records_((require_all_can(config, workloads_), most_records(config, workloads_))),
        scratch_(config.pool_dir.empty() ? default_parent(needed_space(config)) : config.pool_dir),
        planner_(std::max(config.records, config.operations)) {
    report_.config = config;
    for (const std::string& name : config.systems) systems_.push_back(&find_system(name));
    if (std::ranges::count(workloads_, PhaseKind::reopen, &Workload::phase) > 0) crasher_.emplace();
    report_.directory = scratch_.path().string();
    report_.file_system = file_system_of(scratch_.path());
    report_.durability = resolve_durability();
    report_.machine = machine_description();
    report_.build = build_description();
    report_.clock_nanoseconds = clock_cost_nanoseconds();
  }

  Report run() {
    for (unsigned round = 0; round < config().repeat; ++round) {
      for (const unsigned threads : config().threads) {
        // Each round begins with a different system, so that no system always runs first.
        for (std::size_t i = 0; i < systems_.size(); ++i) {
          run_system(*systems_[(i + round) % systems_.size()], threads);
        }
      }
    }
    return std::move(report_);
  }

 private:
  const Config& config() const { return report_.config; }

  // The competitors' files are several times the data.
  std::uint64_t needed_space(const Config& config) const {
    constexpr std::uint64_t kFixed = 512 << 20;
    return kFixed + max_records_ * 8 * (config.data.shape.pair_size() + 16);
  }

  // An estimate of what a system takes in DRAM, files in DRAM included. A run with a meter takes no
  // times and needs no warm memory.
  std::uint64_t system_memory() const {
    if (config().meter != nullptr) return 0;
    return max_records_ * 2 * (config().data.shape.pair_size() + 48);
  }

  // The durability that a pool chooses for `automatic` on this file system applies to all systems.
  Durability resolve_durability() const {
    if (config().durability != Durability::automatic) return config().durability;
    const ScratchDirectory directory(scratch_.path());
    PoolOptions options;
    options.domain = config().domain;
    return Pool::create(directory.path() / "probe.pool", options).info().durability;
  }

  Setup setup_in(const ScratchDirectory& directory, unsigned threads) const {
    return {config().data,   directory.path(),     max_records_,       threads, report_.durability,
            config().domain, config().dram_budget, config().pool_size, {}};
  }

  void run_system(const System& system, unsigned threads) {
    note_settings(system, threads);
    const bool has_loaded_phases = workloads_.front()->phase == PhaseKind::load;
    if (has_loaded_phases) run_loaded_phases(system, threads);
    for (const Workload* workload : workloads_) {
      if (workload->phase == PhaseKind::reopen) run_reopen(system, *workload, threads);
    }
  }

  void note_settings(const System& system, unsigned threads) {
    for (const SystemNote& note : report_.notes) {
      if (note.system == system.name && note.threads == threads) return;
    }
    const ScratchDirectory directory(scratch_.path());
    report_.notes.push_back(
        {system.name, threads,
         system.summary + "; " + system.settings(setup_in(directory, threads))});
  }

  void run_loaded_phases(const System& system, unsigned threads) {
    const ScratchDirectory directory(scratch_.path());
    WarmMemory warm(config().warm_memory.value_or(system_memory()));
    const WarmMemoryKeeper keeper(warm);
    const auto resident_bytes = [&] {
      const std::uint64_t held = warm.held(), all = resident_anonymous_bytes();
      return all - std::min(all, held);
    };
    const std::uint64_t resident_before = resident_bytes();
    if (config().meter != nullptr) config().meter->open();
    const std::unique_ptr<Store> store = system.open(setup_in(directory, threads));
    Records records;
    for (const Workload* workload : workloads_) {
      if (workload->phase == PhaseKind::reopen) continue;
      warm.begin_phase();
      Round round = run_mix(system, *store, *workload, threads, records);
      const OwnFootprint own = store->footprint();
      const std::uint64_t resident = resident_bytes();
      round.footprint = {own.dram_bytes, resident - std::min(resident, resident_before),
                         own.stored_bytes, allocated_bytes(directory.path()), records.count()};
      result_of(system, *workload, threads).rounds.push_back(round);
      ++phases_done_;
    }
  }

  Round run_mix(const System& system, Store& store, const Workload& workload, unsigned threads,
                Records& records) {
    const std::uint64_t operations =
        workload.phase == PhaseKind::load ? config().records : config().operations;
    const Distribution distribution = config().distribution.value_or(workload.distribution);
    const std::uint64_t seed = config().data.seed;
    const auto plan = planner_.plan(workload, distribution, operations, threads, seed, records);
    PhaseOptions options{seed, config().sample_every, config().stop, config().meter, nullptr};
    if (config().on_progress) {
      options.on_progress = [&](std::uint64_t done) {
        show(system, workload, threads, done, operations);
      };
    }
    if (config().meter != nullptr) config().meter->start();
    const PhaseResult phase = run_phase(store, plan, options);
    Result& result = result_of(system, workload, threads);
    if (config().meter != nullptr) add_counts(result.counts, config().meter->stop());
    check_stop();
    result.latency.merge(phase.latency);
    return {phase.seconds, phase.done, phase.wrong, phase.checksum, {}, {}};
  }

  void run_reopen(const System& system, const Workload& workload, unsigned threads) {
    if (!system.persistent) {
      ++phases_done_;
      return;
    }
    show(system, workload, threads, 0, config().records);
    const ScratchDirectory directory(scratch_.path());
    const Setup setup = setup_in(directory, threads);
    crasher_->load_and_kill(system.name, setup, config().records, config().data.seed);
    check_stop();
    Round round;
    round.reopened = reopen(system, setup);
    result_of(system, workload, threads).rounds.push_back(round);
    ++phases_done_;
  }

  Reopened reopen(const System& system, const Setup& setup) {
    std::vector<Op> gets(config().records);
    for (std::uint64_t n = 0; n < gets.size(); ++n)
      gets[n] = {n, 0, static_cast<std::uint64_t>(OpKind::get)};
    Reopened result;
    result.records = config().records;
    const Clock::time_point begin = Clock::now();
    const std::unique_ptr<Store> store = system.open(setup);
    result.open_seconds = seconds_since(begin);
    const std::span<const Op> all = gets;
    store->run({all.subspan(gets.size() / 2, 1), 0, 1, nullptr, nullptr}, [] {});
    result.first_answer_seconds = seconds_since(begin);
    store->resume();
    result.resumed_seconds = seconds_since(begin);
    result.lost = store->run({all, 0, 1024, nullptr, nullptr}, [] {}).wrong;
    return result;
  }

  Result& result_of(const System& system, const Workload& workload, unsigned threads) {
    for (Result& result : report_.results) {
      if (result.system == system.name && result.workload == workload.name &&
          result.threads == threads)
        return result;
    }
    Result result;
    result.system = system.name;
    result.workload = workload.name;
    result.threads = threads;
    report_.results.push_back(std::move(result));
    return report_.results.back();
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

  void show(const System& system, const Workload& workload, unsigned threads, std::uint64_t done,
            std::uint64_t total) const {
    if (!config().on_progress) return;
    const std::uint64_t phases =
        config().repeat * config().threads.size() * systems_.size() * workloads_.size();
    config().on_progress({system.name, workload.name, threads, done, total, phases_done_, phases});
  }

  void check_stop() const {
    if (config().stop != nullptr && config().stop->load(std::memory_order_relaxed))
      throw Cancelled();
  }

  std::vector<const Workload*> workloads_;
  std::uint64_t max_records_;
  ScratchDirectory scratch_;
  Planner planner_;
  std::vector<const System*> systems_;
  std::optional<Crasher> crasher_;
  Report report_;
  std::uint64_t phases_done_ = 0;
};

}  // namespace

Report run(const Config& config) { return Driver(config).run(); }

}  // namespace perdix::bench
