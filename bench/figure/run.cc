#include "figure/run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/median.h"
#include "common/place.h"
#include "common/require.h"
#include "figure/jobs.h"
#include "figure/metrics.h"
#include "figure/points.h"
#include "pm/probe.h"
#include "systems/systems.h"
#include "terminal/format.h"

namespace perdix::bench {
namespace {

bool is_there(const std::string& system) {
  return std::ranges::find(systems(), system, &System::name) != systems().end();
}

std::vector<std::string> systems_of(const FigureConfig& config) {
  if (!config.systems.empty()) return config.systems;
  std::vector<std::string> known;
  std::ranges::copy_if(config.file.systems, std::back_inserter(known), is_there);
  return known;
}

bool wanted(const FigureConfig& config, const FigureSpec& figure) {
  return config.figures.empty() ||
         std::ranges::find(config.figures, figure.name) != config.figures.end();
}

/// Tasks of the wanted figures that have jobs.
std::vector<Task> tasks_of(const FigureConfig& config) {
  std::vector<Task> tasks;
  for (const FigureSpec& figure : config.file.figures) {
    if (!wanted(config, figure)) continue;
    Task task = task_of(config.file, figure, systems_of(config));
    if (!task.jobs.empty()) tasks.push_back(std::move(task));
  }
  return tasks;
}

/// Says why no system takes part in a figure.
std::string why_none(const FigureSpec& figure) {
  using Build = FigureSpec::Build;
  if (figure.build == Build::instrumented && !detail::pm::kInstrumented)
    return "it needs an instrumented build";
  if (figure.build == Build::normal && detail::pm::kInstrumented)
    return "it needs a build that is not instrumented";
  return "name others with --systems";
}

void validate_values(const Setting& setting) {
  require(!setting.values.empty() && (setting.is_list || setting.values.size() == 1),
          fmt::format("{}: name {} value", setting.name, setting.is_list ? "at least one" : "one"));
  for (const Value& value : setting.values) {
    require(!value.is_number() || (value.number() >= setting.min && value.number() <= setting.max),
            fmt::format("{} is {}, but must be between {} and {}", setting.name, value.text(),
                        setting.min, setting.max));
  }
}

bool needs(const FigureSpec& figure, MetricKind::From from) {
  return std::ranges::any_of(figure.columns, [&](const Column& column) {
    return find_metric(column.metric).from == from;
  });
}

/// What all tasks together need.
struct Room {
  std::uint64_t operations = 1;  ///< of the longest phase
  std::uint64_t records = 1;     ///< in the largest index
  std::uint64_t bytes = 0;       ///< of its files, with space that is freed late

  explicit Room(const std::vector<Task>& tasks) {
    for (const Task& task : tasks)
      for (const std::vector<Job>& jobs : task.jobs)
        for (const Job& job : jobs) add(job);
  }

 private:
  void add(const Job& job) {
    constexpr std::uint64_t kFixed = std::uint64_t{1} << 30, kPair = 240;
    operations = std::max(operations, job.load);
    for (const Step& step : job.steps) operations = std::max(operations, step.count);
    records = std::max(records, job.setup.max_records);
    bytes = std::max(
        bytes, kFixed + job.setup.max_records * (kPair + 2 * job.setup.data.shape.pair_size()));
  }
};

/// Carries out jobs.
class Runner {
 public:
  explicit Runner(Bench& bench) : bench_(bench) {}

  /// Adds the points of a job. Budgets of write buffers that are shares need the DRAM that these
  /// take without a bound.
  void run(const FigureSpec& figure, const Job& job, std::vector<FigurePoint>& points) {
    Setup setup = job.setup;
    if (job.budget_share)
      setup.dram_budget = static_cast<std::uint64_t>(static_cast<double>(full_budget(job)) *
                                                     *job.budget_share / 100);
    std::unique_ptr<Meter> meter;
    if (needs(figure, MetricKind::From::meter)) meter = make_meter(job.model);
    std::unique_ptr<Trial> trial;
    for (const Step& step : job.steps) {
      Measurement measurement;
      measurement.workload = step.workload;
      measurement.shape = setup.data.shape;
      if (step.workload.phase == PhaseKind::reopen) {
        setup.max_records = step.count;
        measurement.reopened = reopen_after_kill(bench_, *job.system, setup, step.count);
        measurement.records = step.count;
      } else {
        if (!trial)
          trial = std::make_unique<Trial>(bench_, *job.system, setup, job.load, meter.get());
        measure(figure, *trial, step, measurement);
      }
      if (names_budget(figure)) measurement.budget = budget_of(job, setup);
      points.push_back(point_of(figure, step, measurement));
    }
  }

 private:
  static void measure(const FigureSpec& figure, Trial& trial, const Step& step,
                      Measurement& measurement) {
    using From = MetricKind::From;
    const std::uint64_t count = step.up_to ? step.count - trial.records() : step.count;
    if (needs(figure, From::differences)) measurement.before = trial.known_footprint();
    measurement.phase = trial.run(step.workload, step.distribution, count);
    if (needs(figure, From::sizes) || needs(figure, From::differences))
      measurement.after = trial.known_footprint();
    measurement.records = trial.records();
  }

  static bool names_budget(const FigureSpec& figure) {
    return std::ranges::find(figure.columns, "budget", &Column::metric) != figure.columns.end();
  }

  /// "all" is as many bytes as write buffers take without a bound.
  std::uint64_t budget_of(const Job& job, const Setup& setup) {
    return setup.dram_budget == ~std::uint64_t{0} ? full_budget(job) : setup.dram_budget;
  }

  /// The DRAM that the steps of a job leave an index with, without a bound on its write buffers,
  /// less that without such buffers. Measured once for jobs that differ in their budgets only.
  std::uint64_t full_budget(const Job& job) {
    const auto known = full_budgets_.find(job.name);
    if (known != full_budgets_.end()) return known->second;
    const auto dram = [&](std::uint64_t budget) {
      Setup setup = job.setup;
      setup.dram_budget = budget;
      Trial trial(bench_, *job.system, setup, job.load);
      for (const Step& step : job.steps) trial.run(step.workload, step.distribution, step.count);
      return trial.known_footprint().dram_bytes.value_or(0);
    };
    const std::uint64_t all = dram(~std::uint64_t{0});
    return full_budgets_[job.name] = all - std::min(all, dram(0));
  }

  static FigurePoint point_of(const FigureSpec& figure, const Step& step,
                              const Measurement& measurement) {
    FigurePoint point{step.at, step.group, step.row, {}, {}};
    for (const Column& column : figure.columns)
      point.values.push_back(find_metric(column.metric).value(measurement));
    if (figure.curves)
      point.curve = {point.group, point.row, distribution_of(measurement.phase->latency)};
    return point;
  }

  Bench& bench_;
  std::map<std::string, std::uint64_t> full_budgets_;
};

/// Makes all figures, round by round.
class FigureRun {
 public:
  explicit FigureRun(const FigureConfig& config)
      : config_(config),
        tasks_(tasks_of(config)),
        room_(tasks_),
        scratch_(config.parent(room_.bytes)),
        bench_{config, scratch_.path(), Planner(room_.operations), &crasher_},
        runner_(bench_) {
    for (const Task& task : tasks_)
      for (const auto& jobs : task.jobs) bench_.phases += config.repeat * jobs.size();
  }

  Report run() {
    Report report = report_of(config_.file.title, scratch_.path(), config_.repeat);
    report.settings = settings();
    report.sizes = sizes();
    report.systems = systems();
    report.notes = notes();
    report.figures =
        medians_of(config_.repeat, [this](std::uint64_t number) { return round(number); });
    report.checks = checks();
    report.wrong = bench_.wrong;
    return report;
  }

 private:
  /// Each round begins with a different system, so that no system always runs first.
  std::vector<Figure> round(std::uint64_t number) {
    std::vector<Figure> figures;
    for (const Task& task : tasks_) {
      std::vector<FigurePoint> points;
      for (std::size_t i = 0; i < task.jobs.size(); ++i) {
        for (const Job& job : task.jobs[(i + number) % task.jobs.size()]) {
          runner_.run(*task.figure, job, points);
          ++bench_.phase;
        }
      }
      if (task.figure->published) add_published(config_.file, *task.figure, points);
      compute_columns(config_.file, *task.figure, points);
      for (const CheckSpec& check : task.figure->checks)
        checked_[&check].push_back(value_of(check, *task.figure, points));
      if (task.figure->average) add_averages(points);
      figures.push_back(figure_of(*task.figure, points));
    }
    return figures;
  }

  std::vector<Checked> checks() const {
    std::vector<Checked> all;
    for (const Task& task : tasks_) {
      for (const CheckSpec& check : task.figure->checks)
        all.push_back({task.figure->name, check.claim, median(checked_.at(&check)),
                       check.at_least.value_or(check.at_most.value_or(0)),
                       check.at_least.has_value()});
    }
    return all;
  }

  /// Systems that take part in a figure, in the order of their names in the command or the file.
  std::vector<SystemInfo> systems() const {
    std::vector<SystemInfo> all;
    for (const Task& task : tasks_) {
      for (const std::vector<Job>& jobs : task.jobs) {
        const System& system = *jobs.front().system;
        if (std::ranges::find(all, system.name, &SystemInfo::name) != all.end()) continue;
        const ScratchDirectory directory(scratch_.path());
        Setup setup = jobs.front().setup;
        setup.directory = directory.path();
        all.push_back(
            {system.name, system.persistent, system.summary + "; " + system.settings(setup)});
      }
    }
    return all;
  }

  /// "records 1,000,000, operations 500,000": settings that are one number.
  std::string sizes() const {
    std::vector<std::string> all;
    for (const auto& [name, value] : scalars(config_.file)) {
      if (value.is_number())
        all.push_back(fmt::format(
            "{} {}", name, terminal::format_count(static_cast<std::uint64_t>(value.number()))));
    }
    return fmt::format("{}", fmt::join(all, ", "));
  }

  nlohmann::json settings() const {
    nlohmann::json all = {
        {"systems", systems_of(config_)}, {"repeat", config_.repeat}, {"seed", config_.seed}};
    for (const Setting& setting : config_.file.settings) {
      nlohmann::json values = nlohmann::json::array();
      for (const Value& value : setting.values) {
        if (value.is_number())
          values.push_back(value.number());
        else
          values.push_back(value.text());
      }
      all[setting.name] = setting.is_list ? values : values.front();
    }
    return all;
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes = config_.file.notes;
    std::vector<std::string> missing;
    if (config_.systems.empty())
      std::ranges::copy_if(config_.file.systems, std::back_inserter(missing),
                           [](const std::string& name) { return !is_there(name); });
    if (!missing.empty())
      notes.push_back(fmt::format("not there, so left out: {}", fmt::join(missing, ", ")));
    return notes;
  }

  const FigureConfig& config_;
  Crasher crasher_;  // forks, so it must come before anything that starts threads
  std::vector<Task> tasks_;
  Room room_;
  ScratchDirectory scratch_;
  Bench bench_;
  Runner runner_;
  std::map<const CheckSpec*, std::vector<double>> checked_;
};

}  // namespace

void validate(const FigureConfig& config) {
  require(config.repeat >= 1 && config.repeat <= 1000, "repeat must be between 1 and 1000");
  for (const std::string& name : config.systems) find_system(name);
  for (const Setting& setting : config.file.settings) validate_values(setting);
  std::vector<std::string> names;
  for (const FigureSpec& figure : config.file.figures) names.push_back(figure.name);
  for (const std::string& name : config.figures) {
    require(std::ranges::find(names, name) != names.end(),
            fmt::format("no figure '{}'; choose from: {}", name, fmt::join(names, ", ")));
  }
  const std::vector<Task> tasks = tasks_of(config);
  for (const FigureSpec& figure : config.file.figures) {
    if (config.figures.empty() || !wanted(config, figure)) continue;
    require(std::ranges::find(tasks, &figure, &Task::figure) != tasks.end(),
            fmt::format("no system can take part in '{}': {}", figure.name, why_none(figure)));
  }
  require(!tasks.empty(), "none of the systems can take part in any figure");
}

Report run(const FigureConfig& config) {
  validate(config);
  return FigureRun(config).run();
}

}  // namespace perdix::bench
