#include "special/elf/experiment.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/place.h"
#include "common/require.h"
#include "pm/probe.h"
#include "special/elf/data.h"
#include "special/elf/elf_system.h"
#include "special/elf/lines.h"
#include "terminal/format.h"

namespace perdix::bench::points {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kTypes = {QueryType::exact, QueryType::range, QueryType::partial};
constexpr std::size_t kCompared = 8;     // queries of each phase whose answers are compared
constexpr std::size_t kCounted = 200;    // exact matches whose lines are counted
constexpr double kDramNanoseconds = 80;  // idle read latencies: table I of the paper
constexpr double kPmNanoseconds = 175;

double nanoseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

struct Policy {
  std::string name;
  CachePolicy policy;
};

std::vector<Policy> policies(std::uint64_t elf_bytes) {
  const std::uint64_t one_percent = elf_bytes / 100;
  return {{"hybrid", CachePolicy::hybrid()},
          {"1 level", CachePolicy::static_levels(1)},
          {"2 levels", CachePolicy::static_levels(2)},
          {"3 levels", CachePolicy::static_levels(3)},
          {"dynamic", CachePolicy::dynamic(CachePolicy::kUnlimited)},
          {"dynamic, 1 %", CachePolicy::dynamic(one_percent)},
          {"1 level, dynamic", CachePolicy::static_levels(1) | CachePolicy::dynamic(one_percent)},
          {"probability, 1 %", CachePolicy::probability(one_percent)}};
}

/// What one phase's queries took.
struct Times {
  double nanoseconds = 0;  // of a query
  double pm_lines = 0;     // of a query; 0 in a normal build
  double dram_lines = 0;

  /// 0 in a normal build.
  double modelled() const {
    if (!detail::pm::kInstrumented) return 0;
    return pm_lines * kPmNanoseconds + dram_lines * kDramNanoseconds;
  }
};

/// Carries out all experiments once.
class Round {
 public:
  Round(const Config& config, const Data& data, const std::filesystem::path& directory,
        std::uint64_t number)
      : config_(config), data_(data), directory_(directory), number_(number) {
    const auto scan = make_scan(data);
    for (const QueryType type : kTypes) {
      queries_[type] = make_queries(data, type, config.queries, config.seed + 1);
      for (std::size_t i = 0; i < std::min(kCompared, queries_[type].size()); ++i) {
        scan->answer(type, queries_[type][i], tids_);
        std::ranges::sort(tids_);
        expected_[type].push_back(tids_);
      }
    }
  }

  std::vector<Figure> run() {
    std::vector<Figure> figures;
    for (const std::string& name : config_.figures) {
      if (name == "methods") figures.push_back(methods());
      if (name == "policies") figures.push_back(by_group(compare_policies()));
      if (name == "selectivity") figures.push_back(by_group(selectivity()));
    }
    return figures;
  }

  std::uint64_t wrong() const { return wrong_; }

 private:
  void next_phase(std::string_view system, std::string_view what) {
    config_.check_stop();
    config_.show({fmt::format("{} {}, 1 thread", system, what), 0, 1, phase_, phase_ + 1});
    ++phase_;
  }

  void compare(System& system, QueryType type) {
    for (std::size_t i = 0; i < expected_[type].size(); ++i) {
      system.answer(type, queries_[type][i], tids_);
      std::ranges::sort(tids_);
      wrong_ += tids_ == expected_[type][i] ? 0 : 1;
    }
  }

  /// The mean time of the queries, over again until the time is over.
  double measure(System& system, QueryType type, const std::vector<Query>& queries) {
    const auto begin = Clock::now();
    double passed = 0;
    std::uint64_t done = 0;
    while (passed < config_.seconds * 1e9) {
      system.answer(type, queries[done % queries.size()], tids_);
      ++done;
      passed = nanoseconds_since(begin);
    }
    return passed / static_cast<double>(done);
  }

  void warm_up(System& system, QueryType type, const std::vector<Query>& queries) {
    const std::uint64_t wanted = type == QueryType::exact ? config_.warm_up : kCompared;
    for (std::uint64_t i = 0; i < wanted; ++i)
      system.answer(type, queries[i % queries.size()], tids_);
  }

  std::unique_ptr<System> make(const std::string& name) const {
    if (name == "rtree") return make_rtree(data_);
    if (name == "sqlite") return make_sqlite(data_);
    if (name == "scan") return make_scan(data_);
    return make_elf(data_, directory_, name == "hybrid");
  }

  /// Figure 3: what building takes, and each type of query, with all systems.
  Figure methods() {
    Figure figure{"methods",
                  "Building and queries by system (fig. 3)",
                  {{"time", Unit::nanoseconds}, {"times scan", Unit::ratio}, {"size", Unit::ratio}},
                  {}};
    std::map<QueryType, double> of_scan;
    for (const std::string& name : config_.systems) {
      next_phase(name, "build");
      const ScratchDirectory scratch(directory_);
      const auto begin = Clock::now();
      const auto system = name == "elf" || name == "hybrid"
                              ? make_elf(data_, scratch.path(), name == "hybrid")
                              : make(name);
      const double of_row = nanoseconds_since(begin) / static_cast<double>(data_.rows());
      const double size = static_cast<double>(system->bytes()) / static_cast<double>(data_.bytes());
      if (name != "scan") figure.rows.push_back({"build, a row", name, {of_row, 0, size}});
      for (const QueryType type : kTypes) {
        next_phase(name, to_string(type));
        compare(*system, type);
        warm_up_unless_scan(name, *system, type);
        const double time = measure(*system, type, queries_[type]);
        if (name == "scan") of_scan[type] = time;
        figure.rows.push_back({to_string(type), name, {time, of_scan[type] / time, size}});
      }
    }
    return by_group(std::move(figure));
  }

  void warm_up_unless_scan(const std::string& name, System& system, QueryType type) {
    if (name != "scan") warm_up(system, type, queries_[type]);
  }

  Times measure_elf(ElfSystem& elf, QueryType type, const std::vector<Query>& queries) {
    warm_up(elf, type, queries);
    Times times;
    times.nanoseconds = measure(elf, type, queries);
    const std::size_t wanted = type == QueryType::exact ? kCounted : kCompared;
    const std::size_t counted = std::min(wanted, queries.size());
    const LinesRead lines =
        lines_read(counted, [&](std::size_t i) { elf.answer(type, queries[i], tids_); });
    times.pm_lines = static_cast<double>(lines.pm) / static_cast<double>(counted);
    times.dram_lines = static_cast<double>(lines.dram) / static_cast<double>(counted);
    return times;
  }

  /// Figure 4: each policy, and none before and after it.
  Figure compare_policies() {
    Figure figure{"policies",
                  "Queries by caching policy (fig. 4)",
                  {{"time", Unit::nanoseconds},
                   {"times none", Unit::ratio},
                   {"cache", Unit::bytes},
                   {"PM lines", Unit::count},
                   {"DRAM lines", Unit::count},
                   {"modelled", Unit::nanoseconds}},
                  {}};
    const ScratchDirectory scratch(directory_);
    ElfSystem elf(data_, scratch.path(), false);
    for (const QueryType type : kTypes) {
      next_phase("elf", to_string(type));
      Times none = measure_elf(elf, type, queries_[type]);
      figure.rows.push_back(
          {to_string(type), "none", {none.nanoseconds, 1, 0, none.pm_lines, 0, none.modelled()}});
      for (const Policy& policy : policies(elf.bytes())) {
        next_phase(policy.name, to_string(type));
        elf.set_policy(policy.policy);
        compare(elf, type);
        const Times times = measure_elf(elf, type, queries_[type]);
        const auto cache = static_cast<double>(elf.stats().cache_bytes);
        elf.set_policy(CachePolicy::none());
        const Times after = measure_elf(elf, type, queries_[type]);
        const double ratio = (none.nanoseconds + after.nanoseconds) / 2 / times.nanoseconds;
        figure.rows.push_back({to_string(type),
                               policy.name,
                               {times.nanoseconds, ratio, cache, times.pm_lines, times.dram_lines,
                                times.modelled()}});
        none = after;
      }
    }
    return figure;
  }

  /// Figure 5: exact matches of rows among a part of the table.
  Figure selectivity() {
    Figure figure{"selectivity",
                  "Exact matches of rows among a share of all (fig. 5)",
                  {{"time", Unit::nanoseconds}, {"times none", Unit::ratio}},
                  {}};
    const ScratchDirectory scratch(directory_);
    ElfSystem elf(data_, scratch.path(), false);
    for (const double share : {0.01, 0.1, 0.5, 1.0}) {
      const auto queries = make_queries(data_, QueryType::exact, config_.queries, number_, share);
      const std::string group = fmt::format("{:.0f} % of the rows", share * 100);
      next_phase("elf", group);
      elf.set_policy(CachePolicy::none());
      const double none = measure_elf(elf, QueryType::exact, queries).nanoseconds;
      figure.rows.push_back({group, "none", {none, 1}});
      elf.set_policy(CachePolicy::static_levels(3));
      const double cached = measure_elf(elf, QueryType::exact, queries).nanoseconds;
      figure.rows.push_back({group, "3 levels", {cached, none / cached}});
    }
    return figure;
  }

  const Config& config_;
  const Data& data_;
  const std::filesystem::path& directory_;
  const std::uint64_t number_;
  std::map<QueryType, std::vector<Query>> queries_;
  std::map<QueryType, std::vector<Tids>> expected_;
  Tids tids_;
  std::uint64_t wrong_ = 0;
  std::uint64_t phase_ = 0;
};

void require_known(const std::vector<std::string>& names, const std::vector<std::string>& known,
                   std::string_view what) {
  require(!names.empty(), fmt::format("name at least one {}", what));
  for (const std::string& name : names) {
    require(std::ranges::find(known, name) != known.end(),
            fmt::format("no {} '{}'; choose from: {}", what, name, fmt::join(known, ", ")));
  }
}

nlohmann::json to_json(const Config& config) {
  return {{"systems", config.systems}, {"rows", config.rows},       {"warm_up", config.warm_up},
          {"queries", config.queries}, {"seconds", config.seconds}, {"repeat", config.repeat},
          {"seed", config.seed}};
}

}  // namespace

std::vector<std::string> figure_names() { return Config().figures; }
std::vector<std::string> system_names() { return Config().systems; }

void validate(const Config& config) {
  require_known(config.figures, figure_names(), "figure");
  require_known(config.systems, system_names(), "system");
  require(config.rows > 0 && config.rows <= Elf::kMaxRows, "rows must be between 1 and 2^31 - 1");
  require(config.queries > 0 && config.queries <= 100'000'000, "queries: 1 to 100M");
  require(config.seconds > 0 && config.seconds <= 3600, "seconds of a phase: above 0, up to 3600");
  require(config.repeat > 0 && config.repeat <= 1000, "repeat must be between 1 and 1000");
}

Report run(const Config& config) {
  validate(config);
  const std::uint64_t needed = 3 * config.rows * kDimensions * sizeof(std::uint32_t);
  const ScratchDirectory scratch(config.parent(needed));
  Report report = report_of("Elf with selective caching: the experiments of its paper",
                            scratch.path(), config.repeat);
  report.settings = to_json(config);
  report.sizes =
      fmt::format("{} rows, {} s a phase", terminal::format_count(config.rows), config.seconds);
  const Data data(config.rows, config.seed);
  report.figures = medians_of(config.repeat, [&](std::uint64_t number) {
    Round round(config, data, scratch.path(), number);
    auto figures = round.run();
    report.wrong += round.wrong();
    return figures;
  });
  return report;
}

}  // namespace perdix::bench::points
