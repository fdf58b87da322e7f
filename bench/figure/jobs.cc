#include "figure/jobs.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <perdix/error.h>

#include "common/require.h"
#include "pm/probe.h"
#include "systems/systems.h"

namespace perdix::bench {
namespace {

constexpr std::size_t kStringBytes = 24;  // of keys that are strings
constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 40;
constexpr std::uint64_t kSmallestCache = std::uint64_t{16} << 10;

template <class Known>
void refuse_unknown(std::string_view what, std::string_view name, const Known& known) {
  refuse(fmt::format("no {} '{}'; choose from: {}", what, name, fmt::join(known, ", ")));
}

constexpr std::array<std::string_view, kOpKinds> kOperations = {
    "get", "absent", "insert", "update", "rmw", "scan", "erase", "batched_get", "insert_ahead"};

Names joined(Names names, const Names& more) {
  for (const auto& [name, value] : more) names.insert_or_assign(name, value);
  return names;
}

/// A whole number from `least` on.
std::uint64_t count_of(std::string_view what, double value, std::uint64_t least = 1) {
  if (!(value >= static_cast<double>(least) && value <= static_cast<double>(kMaxCount)))
    refuse(fmt::format("{} is {}, but must be between {} and 2^40", what, value, least));
  return static_cast<std::uint64_t>(value);
}

bool takes(const System& system, std::string_view parameter) {
  return std::ranges::find(system.parameters, parameter) != system.parameters.end();
}

bool is_parameter(std::string_view name) {
  return std::ranges::any_of(systems(), [&](const System& system) { return takes(system, name); });
}

bool takes_part(const System& system, const RunSpec& run) {
  const auto matches = [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), system.name.c_str(), 0) == 0;
  };
  return (run.only.empty() || std::ranges::any_of(run.only, matches)) &&
         std::ranges::all_of(run.needs, [&](auto& need) { return has_need(system, need); }) &&
         std::ranges::all_of(
             run.axes, [&](auto& axis) { return !is_parameter(axis) || takes(system, axis); });
}

const Setting& find_setting(const FigureFile& file, std::string_view name) {
  return *std::ranges::find(file.settings, name, &Setting::name);
}

/// Calls call(names) for each combination of the values of these settings, the last one's values
/// following each other.
void for_each_combination(const FigureFile& file, const std::vector<std::string>& settings,
                          const std::function<void(const Names&)>& call, Names chosen = {}) {
  if (chosen.size() == settings.size()) return call(chosen);
  const std::string& name = settings[chosen.size()];
  for (const Value& value : find_setting(file, name).values)
    for_each_combination(file, settings, call, joined(chosen, {{name, value}}));
}

/// Reads the settings of an index from names.
class SetupReader {
 public:
  SetupReader(const System& system, const Names& names) : system_(system), names_(names) {}

  Setup setup() const {
    Setup setup;
    setup.threads = static_cast<unsigned>(count_of("threads", number("threads", 1)));
    if (setup.threads > 1024) refuse("threads: 1 to 1024");
    setup.durability = durability();
    setup.domain = domain();
    setup.dram_budget = dram_budget();
    setup.data.shape = shape();
    for (const std::string& parameter : system_.parameters)
      if (names_.contains(parameter))
        setup.parameters[parameter] = count_of(parameter, number(parameter, 0), 0);
    return setup;
  }

  TrafficModel model() const {
    TrafficModel model;
    model.caches_persist = domain() == DomainChoice::cpu_cache;
    model.media_unit = count_of("media_unit", number("media_unit", 256));
    if (model.media_unit != 64 && model.media_unit != 256 && model.media_unit != 4096)
      refuse(fmt::format("media_unit is {}, but must be 64, 256 or 4096", model.media_unit));
    model.cache_bytes =
        std::max(kSmallestCache, count_of("cache_bytes", number("cache_bytes", 4 << 20)));
    model.log_records = word("log_records", "yes", {"yes", "no"}) == "yes";
    return model;
  }

  /// The share of the DRAM for write buffers, if it is not all or nothing.
  std::optional<double> budget_share() const {
    const auto found = names_.find("budget");
    if (found == names_.end() || !found->second.is_number()) return std::nullopt;
    return found->second.number();
  }

 private:
  double number(std::string_view name, double otherwise) const {
    const auto found = names_.find(name);
    if (found == names_.end()) return otherwise;
    if (!found->second.is_number())
      refuse(fmt::format("{} is '{}', but must be a number", name, found->second.text()));
    return found->second.number();
  }

  std::string word(std::string_view name, std::string_view otherwise,
                   std::initializer_list<std::string_view> words) const {
    const auto found = names_.find(name);
    if (found == names_.end()) return std::string(otherwise);
    std::string chosen = found->second.text();
    if (std::ranges::find(words, chosen) == words.end()) refuse_unknown(name, chosen, words);
    return chosen;
  }

  Durability durability() const {
    return word("durability", "process", {"process", "power"}) == "power" ? Durability::power
                                                                          : Durability::process;
  }

  DomainChoice domain() const {
    const std::string chosen = word("domain", "detect", {"detect", "eADR", "ADR"});
    if (chosen == "detect") return DomainChoice::detect;
    return chosen == "eADR" ? DomainChoice::cpu_cache : DomainChoice::memory_controller;
  }

  std::uint64_t dram_budget() const {
    constexpr std::uint64_t kAll = ~std::uint64_t{0};
    if (names_.contains("budget"))
      return budget_share() || word("budget", "all", {"none", "all"}) == "none" ? 0 : kAll;
    return names_.contains("dram_budget") ? count_of("dram_budget", number("dram_budget", 0), 0)
                                          : kAll;
  }

  Shape shape() const {
    Shape shape;
    if (word("keys", "integers", {"integers", "strings"}) == "strings") {
      shape.key_kind = shape.value_kind = Kind::bytes;
      shape.key_size = kStringBytes;
    }
    if (names_.contains("value_size")) {
      shape.value_kind = Kind::bytes;
      shape.value_size = count_of("value_size", number("value_size", 0));
      if (shape.value_size > std::uint64_t{1} << 20) refuse("values have 1 byte to 1 MiB");
    }
    return shape;
  }

  const System& system_;
  const Names& names_;
};

/// Makes the steps of a job, and counts the pairs that they may add.
class StepMaker {
 public:
  StepMaker(const RunSpec& run, const System& system, const Names& names, std::uint64_t load)
      : run_(run), system_(system), names_(names), max_(load), min_(load) {}

  void add(const PhaseSpec& phase, const Coordinates& at) {
    const std::uint64_t times =
        phase.times.empty() ? 1 : count_of("times", evaluate(phase.times, joined(names_, at)));
    for (std::uint64_t time = 1; time <= times; ++time) {
      Coordinates here = at;
      if (!phase.times.empty()) here.insert_or_assign("time", static_cast<double>(time));
      if (phase.workloads.empty()) add(phase, mix_of(phase, joined(names_, here)), here);
      for (const std::string& name : phase.workloads) add(phase, find_workload(name), here);
    }
  }

  std::vector<Step> steps() && { return std::move(steps_); }

  /// The highest number of pairs at any time.
  std::uint64_t max_records() const { return max_; }

 private:
  static Workload mix_of(const PhaseSpec& phase, const Names& names) {
    Workload mix{"mix", "a mix of operations"};
    double sum = 0;
    for (const auto& [operation, share] : phase.mix) {
      const std::uint64_t percent = count_of("a share of the mix", evaluate(share, names), 0);
      mix.percent[static_cast<std::size_t>(operation_of(operation))] =
          static_cast<std::uint8_t>(std::min<std::uint64_t>(percent, 101));
      sum += static_cast<double>(percent);
    }
    if (sum != 100) refuse(fmt::format("the shares of a mix add up to {}, not to 100", sum));
    return mix;
  }

  void add(const PhaseSpec& phase, Workload workload, Coordinates at) {
    const Names all = joined(names_, at);
    if (why_not(system_, workload, 1)) return;
    if (all.contains("theta")) workload.theta = value_of("theta", all).number();
    Step step{workload, distribution_of(workload, all), 0, !phase.up_to.empty(), std::move(at), {},
              {}};
    step.count = step.up_to ? count_of("up_to", evaluate(phase.up_to, all))
                            : count_of("count", evaluate(phase.count, all));
    step.at.insert_or_assign("distribution", Value(std::string(to_string(step.distribution))));
    const Names workload_name = {{"do", Value(std::string(workload.name))}};
    const Names here = joined(joined(all, step.at), workload_name);
    step.at.insert_or_assign("phase", Value(expand(phase.name, here)));
    step.group = expand(run_.group, joined(names_, step.at));
    step.row = expand(run_.row, joined(names_, step.at));
    count_records(step);
    steps_.push_back(std::move(step));
  }

  /// The latest keys are what a workload is about; other choices are replaced.
  static Distribution distribution_of(const Workload& workload, const Names& names) {
    const auto found = names.find("distribution");
    if (found == names.end() || workload.distribution == Distribution::latest)
      return workload.distribution;
    for (const auto distribution :
         {Distribution::uniform, Distribution::zipfian, Distribution::latest})
      if (to_string(distribution) == found->second.text()) return distribution;
    refuse_unknown("distribution", found->second.text(),
                   std::array{"uniform", "zipfian", "latest"});
    return {};
  }

  void count_records(const Step& step) {
    if (step.up_to) {
      if (step.count <= min_)
        refuse(fmt::format("{} pairs after {}: sizes must ascend", step.count, min_));
      min_ = step.count;
      max_ = std::max(max_, step.count);
    } else if (step.workload.phase == PhaseKind::reopen) {
      max_ = std::max(max_, step.count);
    } else {
      const auto share =
          step.workload.share(OpKind::insert) + step.workload.share(OpKind::insert_ahead);
      // Shares are drawn at random.
      max_ += share == 100 ? step.count : std::min(step.count, 2 * step.count * share / 100);
      if (share == 100) min_ += step.count;
    }
  }

  const RunSpec& run_;
  const System& system_;
  const Names& names_;
  std::uint64_t max_, min_;  // pairs so far
  std::vector<Step> steps_;
};

/// Names that a run gives fixed values, computed from settings and axes.
Names fixed_names(const RunSpec& run, const Names& names) {
  Names fixed;
  for (const auto& [name, text] : run.fixed) fixed.emplace(name, value_or_word(text, names));
  return fixed;
}

std::string name_of(const Coordinates& at) {
  std::string text;
  for (const auto& [name, value] : at)
    if (name != "budget") text += fmt::format("{}={} ", name, value.text());
  return text;
}

std::optional<Job> job_of(const FigureFile& file, const System& system, const RunSpec& run,
                          const Names& axes) {
  Names names = joined(joined(scalars(file), names_of_system(system.name)), axes);
  const Coordinates at =
      joined(joined(axes, fixed_names(run, names)), {{"system", Value(system.name)}});
  names = joined(std::move(names), at);
  const SetupReader reader(system, names);
  Job job;
  job.system = &system;
  job.setup = reader.setup();
  job.model = reader.model();
  job.budget_share = reader.budget_share();
  if (!run.load.empty()) job.load = count_of("load", evaluate(run.load, names));
  job.name = name_of(at);
  if (job.setup.threads > system.max_threads) return std::nullopt;
  StepMaker maker(run, system, names, job.load);
  for (const PhaseSpec& phase : run.phases)
    for_each_combination(file, phase.each,
                         [&](const Names& chosen) { maker.add(phase, joined(at, chosen)); });
  job.setup.max_records = maker.max_records();
  job.steps = std::move(maker).steps();
  if (job.steps.empty()) return std::nullopt;
  return job;
}

bool suits_build(const FigureSpec& figure) {
  return figure.build == FigureSpec::Build::any ||
         (figure.build == FigureSpec::Build::instrumented) == detail::pm::kInstrumented;
}

}  // namespace

bool has_need(const System& system, std::string_view need) {
  if (need == "pool") return is_of_perdix(system);
  if (need == "persistent") return system.persistent;
  if (need == "insert_ahead") return system.calls.insert_ahead;
  if (need == "load_factor") return system.tells_load_factor;
  refuse_unknown("need", need, std::array{"pool", "persistent", "insert_ahead", "load_factor"});
  return false;
}

OpKind operation_of(std::string_view name) {
  const auto found = std::ranges::find(kOperations, name);
  if (found == kOperations.end()) refuse_unknown("operation", name, kOperations);
  return static_cast<OpKind>(found - kOperations.begin());
}

Names scalars(const FigureFile& file) {
  Names names;
  for (const Setting& setting : file.settings)
    if (!setting.is_list) names.emplace(setting.name, setting.values.front());
  return names;
}

Names names_of_system(std::string_view system) {
  const std::size_t plus = system.find('+');
  const std::string_view techniques =
      plus == std::string_view::npos ? std::string_view() : system.substr(plus + 1);
  return {{"index", Value(std::string(system.substr(0, plus)))},
          {"techniques", Value(std::string(techniques))}};
}

Task task_of(const FigureFile& file, const FigureSpec& figure,
             const std::vector<std::string>& systems) {
  Task task{&figure, {}};
  if (!suits_build(figure)) return task;
  for (const std::string& name : figure.systems.empty() ? systems : figure.systems) {
    const System& system = find_system(name);
    std::vector<Job> jobs;
    for (const RunSpec& run : figure.runs) {
      if (!takes_part(system, run)) continue;
      try {
        for_each_combination(file, run.axes, [&](const Names& axes) {
          if (auto job = job_of(file, system, run, axes)) jobs.push_back(std::move(*job));
        });
      } catch (const Error& e) {
        run.place.refuse(e.what());
      }
    }
    if (!jobs.empty()) task.jobs.push_back(std::move(jobs));
  }
  return task;
}

}  // namespace perdix::bench
