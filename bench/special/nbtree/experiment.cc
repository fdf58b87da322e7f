#include "special/nbtree/experiment.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/place.h"
#include "common/require.h"
#include "special/nbtree/allocators.h"
#include "special/nbtree/handover.h"
#include "systems/systems.h"
#include "terminal/format.h"
#include "ycsb/trial.h"

namespace perdix::bench::figures {
namespace {

bool has_one_thread(const Config& config) {
  return std::ranges::find(config.threads, 1) != config.threads.end();
}

/// How many loaded indexes figure "skew" has at a time: one for each thread alone, and one that n
/// threads share, for each n above one.
std::uint64_t indexes_of_skew(const Config& config) {
  const auto above_one = static_cast<std::uint64_t>(
      std::ranges::count_if(config.threads, [](std::uint64_t threads) { return threads > 1; }));
  return std::ranges::max(config.threads) + above_one;
}

std::uint64_t needed_space(const Config& config) {
  constexpr std::uint64_t kFixed = 512 << 20, kRecord = 64;
  return std::max(kFixed + (config.records + config.operations) * kRecord,
                  indexes_of_skew(config) * (kFixed + config.records * kRecord));
}

/// Reads and updates of records that are chosen by popularity.
Workload mix_of(std::uint64_t write_percent, double theta) {
  Workload mix{"mix", "get and update"};
  mix.percent[static_cast<std::size_t>(OpKind::get)] =
      static_cast<std::uint8_t>(100 - write_percent);
  mix.percent[static_cast<std::size_t>(OpKind::update)] = static_cast<std::uint8_t>(write_percent);
  mix.theta = theta;
  return mix;
}

/// Indexes of one kind that were loaded alike.
struct Loaded {
  Loaded(const Config& config, Bench& bench, const System& system) {
    const auto load = [&](auto& trials, std::uint64_t threads) {
      Setup setup;
      setup.max_records = config.records;
      setup.threads = static_cast<unsigned>(threads);
      trials.push_back(std::make_unique<Trial>(bench, system, setup, config.records));
    };
    for (std::uint64_t i = 0; i < std::ranges::max(config.threads); ++i) load(own, 1);
    for (const std::uint64_t threads : config.threads)
      if (threads > 1) load(shared, threads);
  }

  std::vector<std::unique_ptr<Trial>> own;     // for one thread each
  std::vector<std::unique_ptr<Trial>> shared;  // for each number of threads above one
};

/// Carries out all figures once.
class Round {
 public:
  Round(const Config& config, Bench& bench) : config_(config), bench_(bench) {}

  std::vector<Figure> run() {
    std::vector<Figure> figures;
    for (const std::string& name : config_.figures)
      figures.push_back(name == "skew" ? skew() : allocator());
    return figures;
  }

 private:
  /// Figure 11: how often popular records are chosen, and how many operations write. Beside the
  /// threads that share an index, as many that have one each: what the machine gives two threads
  /// changes with who else uses it. So all of a mix is measured without a pause.
  Figure skew() {
    Figure figure{"skew",
                  "Throughput by skew and share of writes (fig. 11)",
                  {{"throughput", Unit::operations_per_second},
                   {"p99", Unit::nanoseconds},
                   {"to 1 thread", Unit::ratio},
                   {"handover", Unit::nanoseconds}},
                  {}};
    for (const std::string& name : config_.systems) {
      const Loaded loaded(config_, bench_, find_system(name));
      for (const double theta : config_.thetas) {
        for (const std::uint64_t writes : config_.writes)
          add_throughputs(figure, name, loaded, mix_of(writes, theta),
                          fmt::format("theta {}, {} % writes", theta, writes));
      }
    }
    return by_group(std::move(figure));
  }

  void add_throughputs(Figure& figure, const std::string& name, const Loaded& loaded,
                       const Workload& mix, const std::string& group) {
    double of_one_thread = 0;
    const auto add = [&](const std::string& threads, auto run) {
      const double before = handover_nanoseconds();
      const PhaseResult result = run();
      const double rate = result.throughput();
      if (threads == "1 thread") of_one_thread = rate;
      figure.rows.push_back(
          {group,
           fmt::format("{}, {}", name, threads),
           {rate, static_cast<double>(result.latency.percentile(99)),
            of_one_thread == 0 ? 0 : rate / of_one_thread, (before + handover_nanoseconds()) / 2}});
    };
    const auto on = [&](Trial& trial) {
      return [&] { return trial.run(mix, Distribution::zipfian, config_.operations); };
    };
    if (has_one_thread(config_)) add("1 thread", on(*loaded.own.front()));
    auto shared = loaded.shared.begin();
    for (const std::uint64_t threads : config_.threads) {
      if (threads == 1) continue;
      add(threads_text(threads), on(**shared++));
      add(fmt::format("{} x 1 thread", threads), [&] {
        return Trial::run_apart(std::span(loaded.own).first(threads), mix, Distribution::zipfian,
                                config_.operations);
      });
    }
  }

  /// Figure 15: NbTree's inserts, and what the allocator takes of them.
  Figure allocator() {
    const auto on_phase = [&](const char* phase) {
      config_.show({fmt::format("nbtree {}, 1 thread", phase), 0, config_.operations});
    };
    const AllocatorResults results = compare_allocators(config_, bench_.parent, on_phase);
    bench_.wrong += results.wrong;
    Figure figure{"allocator",
                  "Inserts of NbTree by allocator (fig. 15)",
                  {{"throughput", Unit::operations_per_second},
                   {"allocator", Unit::nanoseconds},
                   {"modification", Unit::nanoseconds}},
                  {}};
    const auto inserts = static_cast<double>(config_.operations);
    for (const AllocatorResult& result : results.allocators) {
      const double each = static_cast<double>(std::max<std::uint64_t>(result.replacements, 1));
      // Nothing can be told where Calloc alone has taken longer than the inserts that it is part
      // of.
      const bool told = result.insert_seconds > result.allocator_seconds;
      figure.rows.push_back(
          {"insert",
           result.name,
           {told ? inserts / result.insert_seconds : 0, result.allocator_seconds * 1e9 / inserts,
            result.allocator_seconds * 1e9 / each}});
    }
    return figure;
  }

  const Config& config_;
  Bench& bench_;
};

nlohmann::json to_json(const Config& config) {
  return {{"systems", config.systems},       {"records", config.records},
          {"operations", config.operations}, {"thetas", config.thetas},
          {"write_percents", config.writes}, {"threads", config.threads},
          {"repeat", config.repeat},         {"seed", config.seed}};
}

}  // namespace

std::vector<std::string> figure_names() { return Config().figures; }

void validate(const Config& config) {
  require(!config.systems.empty(), "name at least one system");
  for (const std::string& name : config.systems) find_system(name);
  const std::vector<std::string> names = figure_names();
  for (const std::string& name : config.figures) {
    require(std::ranges::find(names, name) != names.end(),
            fmt::format("no figure '{}'; choose from: {}", name, fmt::join(names, ", ")));
  }
  constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 36;
  require(config.records > 0 && config.records < kMaxCount, "records must be between 1 and 2^36");
  require(config.operations > 0 && config.operations < kMaxCount,
          "operations must be between 1 and 2^36");
  require(!config.thetas.empty() && config.thetas.front() > 0 && config.thetas.back() < 2 &&
              std::ranges::adjacent_find(config.thetas, std::ranges::greater_equal()) ==
                  config.thetas.end(),
          "thetas must ascend and be between 0 and 2");
  for (const std::uint64_t percent : config.writes)
    require(percent <= 100, "shares of writes are percents, 0 to 100");
  for (const std::uint64_t threads : config.threads)
    require(threads > 0 && threads <= 1024, "threads: 1 to 1024");
  require(!config.writes.empty() && !config.threads.empty(),
          "name at least one share of writes and one number of threads");
  require(config.repeat > 0 && config.repeat <= 1000, "repeat must be between 1 and 1000");
}

Report run(const Config& config) {
  validate(config);
  const ScratchDirectory scratch(config.parent(needed_space(config)));
  Bench bench{config, scratch.path(), Planner(std::max(config.records, config.operations))};
  Report report = report_of("NbTree: skew and allocators", scratch.path(), config.repeat);
  report.settings = to_json(config);
  report.sizes =
      fmt::format("{} records, {} operations a phase", terminal::format_count(config.records),
                  terminal::format_count(config.operations));
  report.figures =
      medians_of(config.repeat, [&](std::uint64_t) { return Round(config, bench).run(); });
  report.wrong = bench.wrong;
  return report;
}

}  // namespace perdix::bench::figures
