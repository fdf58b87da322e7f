#include "hash/experiment.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <perdix/error.h>

#include "common/environment.h"
#include "common/place.h"
#include "engines/engines.h"
#include "hash/round.h"
#include "pm/probe.h"

namespace perdix::bench::hashing {
namespace {

bool every(const Engine&) { return true; }
bool outlives_processes(const Engine& engine) { return engine.persistent; }
bool metered(const Engine& engine) { return detail::pm::kInstrumented && is_of_perdix(engine); }
bool has_parameters(const Engine& engine) { return !engine.parameters.empty(); }
bool tells_load_factor(const Engine& engine) { return engine.tells_load_factor; }

struct Experiment {
  std::string name;
  std::string title;
  std::vector<Metric> metrics;
  bool (*suits)(const Engine&);  // whether a contender can take part in this build
  void (Round::*measure)(Figure&, const Engine&);
};

const std::vector<Experiment>& experiments() {
  using enum Unit;
  static const std::vector<Metric> rates = {{"throughput", operations_per_second},
                                            {"scaling", ratio}};
  static const std::vector<Experiment> all = {
      {"operations", "Operations by themselves (Exp#1, Exp#2)", rates, every, &Round::operations},
      {"mixes", "Mixes of YCSB (Exp#3)", rates, every, &Round::mixes},
      {"latency",
       "Latency of an operation (Exp#4)",
       {{"mean", nanoseconds}, {"p50", nanoseconds}, {"p99", nanoseconds}, {"p99.9", nanoseconds}},
       every,
       &Round::latency},
      {"domain", "Inserts with eADR and ADR (Exp#5)", rates, is_of_perdix, &Round::domain},
      {"traffic",
       "What an operation reads and writes (Exp#6, fig. 3 and 4)",
       {{"lines read", count},
        {"lines written", count},
        {"media read", bytes},
        {"media written", bytes},
        {"read amplif.", Unit::ratio},
        {"write amplif.", Unit::ratio}},
       metered,
       &Round::traffic},
      {"space",
       "Bytes of a pair of 8-byte key and value (Exp#7)",
       {{"stored", bytes}, {"DRAM", bytes}, {"DRAM of stored", Unit::ratio}},
       every,
       &Round::space},
      {"values", "Inserts by size of the value (Exp#8)", rates, every, &Round::values},
      {"load_factor",
       "Load factor while pairs are added (Exp#9)",
       {{"load factor", Unit::ratio}},
       tells_load_factor,
       &Round::load_factor},
      {"recovery",
       "Opening after SIGKILL (Exp#10)",
       {{"all back", nanoseconds}, {"first answer", nanoseconds}, {"pairs", operations_per_second}},
       outlives_processes,
       &Round::recovery},
      {"logs", "Inserts by number of collecting logs (Exp#11)", rates, has_parameters,
       &Round::logs},
      {"buckets",
       "Throughput by size of buckets (Exp#12)",
       {{"insert_ahead", operations_per_second}, {"get", operations_per_second}},
       has_parameters,
       &Round::buckets},
  };
  return all;
}

std::vector<const Engine*> engines_for(const Experiment& experiment, const Config& config) {
  std::vector<const Engine*> suited;
  for (const std::string& name : config.engines) {
    const Engine& engine = find_engine(name);
    if (experiment.suits(engine)) suited.push_back(&engine);
  }
  return suited;
}

bool wanted(const Experiment& experiment, const Config& config) {
  return config.figures.empty() ||
         std::ranges::find(config.figures, experiment.name) != config.figures.end();
}

/// An experiment with the contenders that take part.
struct Task {
  const Experiment* experiment;
  std::vector<const Engine*> engines;
};

std::vector<Task> tasks_of(const Config& config) {
  std::vector<Task> tasks;
  for (const Experiment& experiment : experiments()) {
    if (!wanted(experiment, config)) continue;
    auto engines = engines_for(experiment, config);
    if (!engines.empty()) tasks.push_back({&experiment, std::move(engines)});
  }
  return tasks;
}

// Files of the largest contender, with what it frees late.
std::uint64_t needed_space(const Config& config) {
  constexpr std::uint64_t kFixed = std::uint64_t{512} << 20, kRecord = 96;
  return kFixed + most_records(config) * (kRecord + 2 * std::ranges::max(config.value_sizes));
}

void require(bool condition, const std::string& message) {
  if (!condition) throw Error(Errc::invalid_argument, message);
}

bool ascending(const std::vector<std::uint64_t>& numbers) {
  return !numbers.empty() && numbers.front() > 0 &&
         std::ranges::adjacent_find(numbers, std::ranges::greater_equal()) == numbers.end();
}

/// Whether there are numbers, all of them between `least` and `most`.
bool between(const std::vector<std::uint64_t>& numbers, std::uint64_t least, std::uint64_t most) {
  return !numbers.empty() && std::ranges::all_of(numbers, [&](std::uint64_t number) {
    return number >= least && number <= most;
  });
}

void require_figures(const Config& config) {
  const std::vector<std::string> names = figure_names();
  for (const std::string& name : config.figures) {
    require(std::ranges::find(names, name) != names.end(),
            fmt::format("no figure '{}'; choose from: {}", name, fmt::join(names, ", ")));
  }
  const std::vector<Task> tasks = tasks_of(config);
  for (const std::string& name : config.figures) {
    const auto is_it = [&](const Task& task) { return task.experiment->name == name; };
    require(std::ranges::any_of(tasks, is_it),
            fmt::format("no contender can take part in '{}': {}", name,
                        name == "traffic" && !detail::pm::kInstrumented
                            ? "it needs an instrumented build"
                            : "name others with --engines"));
  }
  require(!tasks.empty(), "none of the contenders can take part in any figure");
}

/// Measures the contender of a task, and notes how many of all are done.
class Run {
 public:
  explicit Run(const Config& config)
      : config_(config),
        tasks_(tasks_of(config)),
        scratch_(config.pool_dir.empty() ? default_parent(needed_space(config)) : config.pool_dir),
        bench_{scratch_.path(), Planner(most_records(config)), config.seed, config.stop, {}, 0} {
    if (config.on_progress) bench_.on_progress = progress();
  }

  Report run() {
    Report report{config_,
                  scratch_.path().string(),
                  file_system_of(scratch_.path()),
                  machine_description(),
                  build_description(),
                  contenders(),
                  {},
                  0};
    std::vector<std::vector<Figure>> rounds;
    for (std::uint64_t i = 0; i < config_.repeat; ++i) rounds.push_back(round(i));
    report.figures = medians(rounds);
    report.wrong = bench_.wrong;
    return report;
  }

 private:
  /// Each round begins with another contender, so that none always runs first.
  std::vector<Figure> round(std::uint64_t number) {
    Round round(config_, bench_, crasher_);
    std::vector<Figure> figures;
    for (const Task& task : tasks_) {
      const Experiment& experiment = *task.experiment;
      Figure figure{experiment.name, experiment.title, experiment.metrics, {}};
      for (std::size_t i = 0; i < task.engines.size(); ++i) {
        (round.*experiment.measure)(figure, *task.engines[(i + number) % task.engines.size()]);
        ++done_;
      }
      figures.push_back(by_group(std::move(figure)));
    }
    return figures;
  }

  std::vector<Contender> contenders() const {
    std::vector<Contender> all;
    for (const std::string& name : config_.engines) {
      const Engine& engine = find_engine(name);
      const ScratchDirectory directory(scratch_.path());
      Setup setup;
      setup.directory = directory.path();
      setup.max_records = most_records(config_);
      all.push_back({name, engine.persistent, engine.summary + "; " + engine.settings(setup)});
    }
    return all;
  }

  std::function<void(const Engine&, const Workload&, unsigned, std::uint64_t, std::uint64_t)>
  progress() {
    std::uint64_t measurements = 0;
    for (const Task& task : tasks_) measurements += task.engines.size();
    return [this, all = config_.repeat * measurements](const Engine& engine,
                                                       const Workload& workload, unsigned threads,
                                                       std::uint64_t done, std::uint64_t total) {
      config_.on_progress({engine.name, workload.name, threads, done, total, done_, all});
    };
  }

  const Config& config_;
  Crasher crasher_;  // forks, so it comes before anything that starts threads
  std::vector<Task> tasks_;
  ScratchDirectory scratch_;
  Bench bench_;
  std::uint64_t done_ = 0;  // measurements of a contender for a figure
};

}  // namespace

Config::Config() {
  for (const char* name :
       {"elimda", "nbtree", "tbb", "libcuckoo", "xenium", "flat_map", "tkrzw", "lmdb", "rocksdb"}) {
    if (std::ranges::find(bench::engines(), name, &Engine::name) != bench::engines().end())
      engines.emplace_back(name);
  }
}

std::vector<std::string> figure_names() {
  std::vector<std::string> names;
  for (const Experiment& experiment : experiments()) names.push_back(experiment.name);
  return names;
}

void validate(const Config& config) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 36;
  require(!config.engines.empty(), "name at least one engine");
  for (const std::string& name : config.engines) find_engine(name);
  require(between({config.start, config.records, config.operations}, 1, kMost),
          "numbers of records and operations must be between 1 and 2^36");
  require(ascending(config.pairs) && config.pairs.back() <= kMost,
          "numbers of pairs must ascend and be between 1 and 2^36");
  require(config.samples > 0 && config.samples <= config.records,
          "samples must be between 1 and the number of records");
  require(between(config.value_sizes, 1, std::uint64_t{1} << 20), "values have 1 byte to 1 MiB");
  require(between(config.threads, 1, 1024), "threads: 1 to 1024");
  require(!config.logs.empty() && !config.d_buckets.empty() && !config.p_buckets.empty(),
          "name at least one number of logs and one size of each kind of bucket");
  require(between({config.repeat}, 1, 1000), "repeat must be between 1 and 1000");
  require_figures(config);
}

Report run(const Config& config) {
  validate(config);
  return Run(config).run();
}

}  // namespace perdix::bench::hashing
