#include "hash/round.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "experiments/measure.h"
#include "ycsb/traffic.h"

namespace perdix::bench::hashing {
namespace {

constexpr std::uint64_t kPairBytes = 16;

/// YCSB F as the paper has it: half the operations are reads, half are inserts.
Workload reads_and_inserts() {
  Workload mix{"f (paper)", "50% read, 50% insert"};
  mix.percent[static_cast<std::size_t>(OpKind::get)] = 50;
  mix.percent[static_cast<std::size_t>(OpKind::insert)] = 50;
  return mix;
}

/// A call that adds pairs, and how a system is named that uses it.
struct Way {
  const char* workload;
  std::string row_name;
};

/// Every system inserts, and some can insert ahead.
std::vector<Way> ways_to_add(const System& system) {
  std::vector<Way> ways = {{"insert", system.name}};
  if (system.calls.insert_ahead) ways.push_back({"insert_ahead", system.name + " ahead"});
  return ways;
}

Setup with(Setup setup, const char* parameter, std::uint64_t value) {
  setup.parameters[parameter] = value;
  return setup;
}

void add_traffic(Figure& figure, const std::string& operation, const std::string& row_name,
                 std::uint64_t operations, const std::vector<Count>& counts) {
  // What threads in the background did belongs to the operations as well.
  const auto each = [&](std::string_view name) {
    std::uint64_t sum = 0;
    for (const Count& count : counts) sum += count.name == name ? count.value : 0;
    return ratio(sum, operations);
  };
  figure.rows.push_back({operation,
                         row_name,
                         {each("PM lines read"), each("PM lines written"), each("media bytes read"),
                          each("media bytes written"), each("media bytes read") / kPairBytes,
                          each("media bytes written") / kPairBytes}});
}

}  // namespace

std::uint64_t most_records(const Config& config) {
  // YCSB D and the mix of reads and inserts add some.
  return std::max(config.start + config.records + 2 * config.operations, config.pairs.back());
}

void Round::operations(Figure& figure, const System& system) {
  for (const std::uint64_t threads : threads_for(system, config_.threads)) {
    for (const auto& [way, row_name] : ways_to_add(system)) {
      Trial trial(bench_, system, setup_for(threads), config_.start);
      add_throughput(figure, threads, "insert", row_name,
                     trial.run(find_workload(way), Distribution::uniform, config_.records));
      if (row_name != system.name) continue;
      for (const auto distribution : {Distribution::uniform, Distribution::zipfian})
        add_lookups(figure, threads, trial, system, distribution);
      add_throughput(figure, threads, "erase", system.name,
                     trial.run(find_workload("erase"), Distribution::uniform,
                               std::min(config_.operations, trial.records())));
    }
  }
}

void Round::mixes(Figure& figure, const System& system) {
  const std::array<Workload, 5> all = {find_workload("a"), find_workload("b"), find_workload("d"),
                                       find_workload("f"), reads_and_inserts()};
  for (const std::uint64_t threads : threads_for(system, config_.threads)) {
    Trial trial(bench_, system, setup_for(threads), config_.start + config_.records);
    for (const Workload& workload : all) {
      if (why_not(system, workload, 1)) continue;
      const Distribution distribution =
          workload.name == "d" ? Distribution::latest : Distribution::uniform;
      add_throughput(figure, threads, std::string(workload.name), system.name,
                     trial.run(workload, distribution, config_.operations));
    }
  }
}

void Round::latency(Figure& figure, const System& system) {
  for (const auto& [way, row_name] : ways_to_add(system)) {
    Trial trial(bench_, system, setup_for(1), config_.start);
    const std::string name = row_name;
    const auto add = [&](const char* operation, const char* workload, std::uint64_t count) {
      const PhaseResult result = trial.run(find_workload(workload), Distribution::uniform, count);
      const auto percentile = [&](double share) {
        return static_cast<double>(result.latency.percentile(share));
      };
      figure.rows.push_back(
          {operation,
           name,
           {1e9 / throughput(result), percentile(50), percentile(99), percentile(99.9)}});
    };
    add("insert", way, config_.records);
    if (row_name != system.name) continue;
    for (const char* operation : {"get", "absent", "erase"})
      add(operation, operation, config_.operations);
  }
}

void Round::domain(Figure& figure, const System& system) {
  for (const std::uint64_t threads : threads_for(system, config_.threads)) {
    for (const auto& [choice, label] : {std::pair{DomainChoice::cpu_cache, "eADR"},
                                        std::pair{DomainChoice::memory_controller, "ADR"}}) {
      for (const auto& [way, row_name] : ways_to_add(system)) {
        Setup setup = setup_for(threads);
        setup.domain = choice;
        Trial trial(bench_, system, setup, config_.start);
        add_throughput(figure, threads, "insert", fmt::format("{}, {}", row_name, label),
                       trial.run(find_workload(way), Distribution::uniform, config_.records));
      }
    }
  }
}

void Round::traffic(Figure& figure, const System& system) {
  for (const bool persist : {true, false}) {
    for (const auto& [way, row_name] : ways_to_add(system)) {
      const auto meter = make_meter({persist, config_.media_unit, config_.cache_bytes});
      Setup setup = setup_for(1);
      setup.domain = persist ? DomainChoice::cpu_cache : DomainChoice::memory_controller;
      Trial trial(bench_, system, setup, 0, meter.get());
      const std::string name = fmt::format("{}, {}", row_name, persist ? "eADR" : "ADR");
      const auto add = [&](const char* operation, const char* workload, std::uint64_t count) {
        trial.run(find_workload(workload), Distribution::uniform, count);
        add_traffic(figure, operation, name, count, meter->stop());
      };
      add("insert", way, config_.start + config_.records);
      if (row_name != system.name) continue;
      for (const char* operation : {"get", "absent", "update", "erase"})
        add(operation, operation, config_.operations);
    }
  }
}

void Round::space(Figure& figure, const System& system) {
  Trial trial(bench_, system, setup_for(1), 0);
  for (const std::uint64_t pairs : config_.pairs) {
    trial.run(find_workload("insert"), Distribution::uniform, pairs - trial.records());
    const OwnFootprint own = trial.footprint();
    const std::uint64_t dram = own.dram_bytes.value_or(0);
    const std::uint64_t stored = own.stored_bytes.value_or(0);
    figure.rows.push_back(
        {pairs_text(pairs),
         system.name,
         {ratio(stored, pairs), ratio(dram, pairs), stored == 0 ? 0 : ratio(dram, stored)}});
  }
}

void Round::values(Figure& figure, const System& system) {
  for (const std::uint64_t threads : threads_for(system, config_.threads)) {
    for (const std::uint64_t size : config_.value_sizes) {
      for (const auto& [way, row_name] : ways_to_add(system)) {
        Setup setup = setup_for(threads);
        setup.data.shape.value_kind = Kind::bytes;
        setup.data.shape.value_size = size;
        Trial trial(bench_, system, setup, config_.start);
        const PhaseResult result =
            trial.run(find_workload(way), Distribution::uniform, config_.records);
        add_throughput(figure, threads, fmt::format("{} B", size), row_name, result);
      }
    }
  }
}

void Round::load_factor(Figure& figure, const System& system) {
  Trial trial(bench_, system, setup_for(1), 0);
  double sum = 0;
  for (std::uint64_t i = 1; i <= config_.samples; ++i) {
    const std::uint64_t pairs = config_.records * i / config_.samples;
    trial.run(find_workload("insert"), Distribution::uniform, pairs - trial.records());
    const double filled = trial.footprint().load_factor.value_or(0);
    sum += filled;
    figure.rows.push_back({pairs_text(pairs), system.name, {filled}});
  }
  figure.rows.push_back({"average", system.name, {sum / static_cast<double>(config_.samples)}});
}

void Round::recovery(Figure& figure, const System& system) {
  for (const std::uint64_t pairs : config_.pairs) {
    const Restart restart = restart_after_kill(bench_, system, setup_for(1), pairs);
    figure.rows.push_back({pairs_text(pairs),
                           system.name,
                           {restart.resumed * 1e9, restart.first_answer * 1e9,
                            static_cast<double>(pairs) / restart.resumed}});
  }
}

void Round::logs(Figure& figure, const System& system) {
  for (const std::uint64_t threads : threads_for(system, config_.threads)) {
    for (const std::uint64_t logs : config_.logs) {
      Trial trial(bench_, system, with(setup_for(threads), "collecting_logs", logs), config_.start);
      add_throughput(
          figure, threads, fmt::format("{} logs", logs), system.name,
          trial.run(find_workload("insert_ahead"), Distribution::uniform, config_.records));
    }
  }
}

void Round::buckets(Figure& figure, const System& system) {
  const auto measure = [&](const char* parameter, const char* name, std::uint64_t pairs) {
    Trial trial(bench_, system, with(setup_for(1), parameter, pairs), config_.start);
    const PhaseResult inserts =
        trial.run(find_workload("insert_ahead"), Distribution::uniform, config_.records);
    const PhaseResult gets =
        trial.run(find_workload("get"), Distribution::uniform, config_.operations);
    figure.rows.push_back({fmt::format("{} of {} B", name, pairs * kPairBytes),
                           system.name,
                           {throughput(inserts), throughput(gets)}});
  };
  for (const std::uint64_t pairs : config_.d_buckets) measure("d_bucket_pairs", "D-bucket", pairs);
  for (const std::uint64_t pairs : config_.p_buckets) measure("p_bucket_pairs", "P-bucket", pairs);
}

Setup Round::setup_for(std::uint64_t threads) const {
  Setup setup;
  setup.max_records = most_records(config_);
  setup.threads = static_cast<unsigned>(threads);
  return setup;
}

void Round::add_lookups(Figure& figure, std::uint64_t threads, Trial& trial, const System& system,
                        Distribution distribution) {
  for (const char* operation : {"get", "batch", "absent", "update"}) {
    const Workload& workload = find_workload(operation);
    if (why_not(system, workload, 1)) continue;
    add_throughput(figure, threads, fmt::format("{}, {}", operation, to_string(distribution)),
                   system.name, trial.run(workload, distribution, config_.operations));
  }
}

}  // namespace perdix::bench::hashing
