#include "experiments/run.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <perdix/error.h>

#include "common/environment.h"
#include "common/place.h"
#include "pm/probe.h"
#include "systems/systems.h"

namespace perdix::bench {
namespace {

bool suits_build(const Experiment& experiment) {
  return experiment.needs == Needs::nothing ||
         (experiment.needs == Needs::meter) == detail::pm::kInstrumented;
}

std::vector<const System*> systems_for(const Experiment& experiment,
                                       const ExperimentOptions& options) {
  std::vector<const System*> suited;
  if (!suits_build(experiment)) return suited;
  for (const std::string& name : options.systems) {
    const System& system = find_system(name);
    if (experiment.suits(system)) suited.push_back(&system);
  }
  return suited;
}

bool wanted(const Experiment& experiment, const ExperimentOptions& options) {
  return options.figures.empty() ||
         std::ranges::find(options.figures, experiment.name) != options.figures.end();
}

/// Says why no system can take part in an experiment.
std::string why_none(const std::vector<Experiment>& experiments, const std::string& name) {
  const Experiment& experiment = *std::ranges::find(experiments, name, &Experiment::name);
  if (suits_build(experiment)) return "name others with --systems";
  return experiment.needs == Needs::meter ? "it needs an instrumented build"
                                          : "it needs a build that is not instrumented";
}

/// An experiment with the systems that take part.
struct Task {
  const Experiment* experiment;
  std::vector<const System*> systems;
};

std::vector<Task> tasks_of(const ExperimentOptions& options,
                           const std::vector<Experiment>& experiments) {
  std::vector<Task> tasks;
  for (const Experiment& experiment : experiments) {
    if (!wanted(experiment, options)) continue;
    auto systems = systems_for(experiment, options);
    if (!systems.empty()) tasks.push_back({&experiment, std::move(systems)});
  }
  return tasks;
}

/// Measures the system of a task and counts the measurements.
class Run {
 public:
  Run(const ExperimentOptions& options, const std::vector<Experiment>& experiments,
      const Sizes& sizes)
      : options_(options),
        most_records_(sizes.most_records),
        tasks_(tasks_of(options, experiments)),
        scratch_(options.pool_dir.empty() ? default_parent(sizes.file_bytes) : options.pool_dir),
        bench_{
            scratch_.path(), crasher_, Planner(most_records_), options.seed, options.stop, {}, 0} {
    if (options.on_progress) bench_.on_progress = progress();
  }

  ExperimentReport run() {
    ExperimentReport report;
    report.repeat = options_.repeat;
    report.directory = scratch_.path().string();
    report.file_system = file_system_of(scratch_.path());
    report.machine = machine_description();
    report.build = build_description();
    report.systems = systems();
    std::vector<std::vector<Figure>> rounds;
    for (std::uint64_t i = 0; i < options_.repeat; ++i) rounds.push_back(round(i));
    report.figures = medians(rounds);
    report.wrong = bench_.wrong;
    return report;
  }

 private:
  /// Each round begins with a different system, so that no system always runs first.
  std::vector<Figure> round(std::uint64_t number) {
    std::vector<Figure> figures;
    for (const Task& task : tasks_) {
      const Experiment& experiment = *task.experiment;
      Figure figure{experiment.name, experiment.title, experiment.metrics, {}};
      for (std::size_t i = 0; i < task.systems.size(); ++i) {
        experiment.measure(bench_, figure, *task.systems[(i + number) % task.systems.size()]);
        ++done_;
      }
      figures.push_back(by_group(std::move(figure)));
    }
    return figures;
  }

  std::vector<SystemInfo> systems() const {
    std::vector<SystemInfo> all;
    for (const std::string& name : options_.systems) {
      const System& system = find_system(name);
      const ScratchDirectory directory(scratch_.path());
      Setup setup;
      setup.directory = directory.path();
      setup.max_records = most_records_;
      all.push_back({name, system.persistent, system.summary + "; " + system.settings(setup)});
    }
    return all;
  }

  std::function<void(const System&, const Workload&, unsigned, std::uint64_t, std::uint64_t)>
  progress() {
    std::uint64_t measurements = 0;
    for (const Task& task : tasks_) measurements += task.systems.size();
    return [this, all = options_.repeat * measurements](const System& system,
                                                        const Workload& workload, unsigned threads,
                                                        std::uint64_t done, std::uint64_t total) {
      options_.on_progress({system.name, workload.name, threads, done, total, done_, all});
    };
  }

  const ExperimentOptions& options_;
  const std::uint64_t most_records_;
  Crasher crasher_;  // forks, so it must come before anything that starts threads
  std::vector<Task> tasks_;
  ScratchDirectory scratch_;
  Bench bench_;
  std::uint64_t done_ = 0;  // measurements of a system for a figure
};

}  // namespace

std::vector<std::string> known_systems(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const std::string& name : names)
    if (std::ranges::find(systems(), name, &System::name) != systems().end()) known.push_back(name);
  return known;
}

std::vector<std::string> names_of(const std::vector<Experiment>& experiments) {
  std::vector<std::string> names;
  for (const Experiment& experiment : experiments) names.push_back(experiment.name);
  return names;
}

void require(bool condition, const std::string& message) {
  if (!condition) throw Error(Errc::invalid_argument, message);
}

bool between(const std::vector<std::uint64_t>& numbers, std::uint64_t least, std::uint64_t most) {
  return !numbers.empty() && std::ranges::all_of(numbers, [&](std::uint64_t number) {
    return number >= least && number <= most;
  });
}

bool ascending(const std::vector<std::uint64_t>& numbers) {
  return !numbers.empty() && numbers.front() > 0 &&
         std::ranges::adjacent_find(numbers, std::ranges::greater_equal()) == numbers.end();
}

void validate(const ExperimentOptions& options, const std::vector<Experiment>& experiments) {
  require(!options.systems.empty(), "name at least one system");
  for (const std::string& name : options.systems) find_system(name);
  require(between({options.repeat}, 1, 1000), "repeat must be between 1 and 1000");
  const std::vector<std::string> names = names_of(experiments);
  for (const std::string& name : options.figures) {
    require(std::ranges::find(names, name) != names.end(),
            fmt::format("no figure '{}'; choose from: {}", name, fmt::join(names, ", ")));
  }
  const std::vector<Task> tasks = tasks_of(options, experiments);
  for (const std::string& name : options.figures) {
    const auto is_it = [&](const Task& task) { return task.experiment->name == name; };
    require(std::ranges::any_of(tasks, is_it),
            fmt::format("no system can take part in '{}': {}", name, why_none(experiments, name)));
  }
  require(!tasks.empty(), "none of the systems can take part in any figure");
}

ExperimentReport run(const ExperimentOptions& options, const std::vector<Experiment>& experiments,
                     const Sizes& sizes) {
  return Run(options, experiments, sizes).run();
}

}  // namespace perdix::bench
