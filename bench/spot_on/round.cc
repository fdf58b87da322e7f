#include "spot_on/round.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "experiments/measure.h"
#include "spot_on/dimms.h"
#include "spot_on/forms.h"
#include "ycsb/traffic.h"

namespace perdix::bench::spot_on {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view kDimmsSuffix = ", DIMMs";
constexpr std::string_view kNoLog = ", no log";

// The cache of the paper's machine, and the number of inserts there.
constexpr double kTestbedCache = 28.5 * (1 << 20);
constexpr double kTestbedInserts = 120.96e6;
constexpr std::uint64_t kSmallestCache = std::uint64_t{16} << 10;

std::uint64_t cache_bytes(const Config& config) {
  if (config.cache_bytes != 0) return config.cache_bytes;
  const double share = static_cast<double>(config.records) / kTestbedInserts;
  return std::max(kSmallestCache, static_cast<std::uint64_t>(kTestbedCache * share));
}

bool of_dimms(const Row& row) { return row.system.find(kDimmsSuffix) != std::string::npos; }

/// Sets the second value of a group's rows to the first one divided by that of the plain index.
/// Rows of DIMMs are divided by the plain row of the DIMMs. Rounds begin with different systems, so
/// the plain row may come after the others.
void compare_with_plain(Figure& figure, const std::string& group, const std::string& index) {
  for (Row& row : figure.rows) {
    if (row.group != group) continue;
    const std::string plain = of_dimms(row) ? fmt::format("{}{}", index, kDimmsSuffix) : index;
    const auto found = std::ranges::find_if(figure.rows, [&](const Row& other) {
      return other.group == group && other.system == plain;
    });
    row.values[1] = found == figure.rows.end() ? 0 : row.values[0] / found->values[0];
  }
}

/// Adds the rows of the DIMMs for the same system; values_of(row) are a row's values.
template <class ValuesOf>
void add_dimms(Figure& figure, const std::string& group, const System& system, ValuesOf values_of) {
  for (const DimmInserts& row : dimm_inserts(system.name)) {
    const std::string name =
        fmt::format("{}{}{}", system.name, kDimmsSuffix, row.log ? ", log" : "");
    figure.rows.push_back({group, name, values_of(row)});
  }
}

// Buckets of latencies: four for each power of two from 64 ns to 1 ms.
constexpr int kFirstPower = 6, kLastPower = 20, kBucketsPerPower = 4;

/// Returns how many latencies are at most `bound`, by bisection, since a histogram has percentiles
/// only.
std::uint64_t count_upto(const detail::util::Histogram& latency, double bound) {
  const auto ranks = std::views::iota(std::uint64_t{0}, latency.count());
  const auto within = [&](std::uint64_t rank) {
    const double percent =
        (static_cast<double>(rank) + 0.5) / static_cast<double>(latency.count()) * 100;
    return static_cast<double>(latency.percentile(percent)) <= bound;
  };
  return static_cast<std::uint64_t>(std::ranges::partition_point(ranks, within) - ranks.begin());
}

/// The share of the operations in each bucket, by the bucket's upper bound. Those that took longer
/// than the last bound are in the last bucket.
std::vector<std::pair<double, double>> distribution_of(const detail::util::Histogram& latency) {
  std::vector<std::pair<double, double>> points;
  std::uint64_t before = 0;
  const int last = kLastPower * kBucketsPerPower;
  for (int i = kFirstPower * kBucketsPerPower; i <= last; ++i) {
    const double bound = std::exp2(static_cast<double>(i) / kBucketsPerPower);
    const std::uint64_t upto = i == last ? latency.count() : count_upto(latency, bound);
    points.emplace_back(bound, ratio(upto - before, latency.count()));
    before = upto;
  }
  return points;
}

}  // namespace

void Round::buffers(Figure& figure, const System& system) {
  const Form form = form_of(system.name);
  const Cost cost = cost_of_insert(system, setup_for(1));
  figure.rows.push_back({form.index, system.name, {cost.media_written, 0, cost.media_read}});
  add_dimms(figure, form.index, system, [](const DimmInserts& row) {
    return std::vector<double>{row.media_written, 0, row.media_read};
  });
  compare_with_plain(figure, form.index, form.index);
}

void Round::traffic(Figure& figure, const System& system) {
  figure.plotted = 3;
  const Form form = form_of(system.name);
  for (const std::uint64_t threads : threads_for(system, config_.threads)) {
    const std::string group = fmt::format("{}, {}", form.index, threads_text(threads));
    const auto add = [&](std::string_view without, const Cost& cost) {
      figure.rows.push_back({group,
                             fmt::format("{}{}", system.name, without),
                             {cost.media_written, 0, cost.media_read, cost.read_to_modify,
                              cost.flushes, cost.fences}});
    };
    add("", cost_of_insert(system, setup_for(threads)));
    if (!form.techniques.empty()) add(kNoLog, cost_of_insert(system, setup_for(threads), false));
    if (threads == 1) {
      add_dimms(figure, group, system, [](const DimmInserts& row) {
        return std::vector<double>{row.media_written, 0,        row.media_read,
                                   kUnknown,          kUnknown, kUnknown};
      });
    }
    compare_with_plain(figure, group, form.index);
  }
}

void Round::throughput(Figure& figure, const System& system) {
  const Form form = form_of(system.name);
  for (const std::uint64_t threads : threads_for(system, config_.threads)) {
    const std::string group = fmt::format("{}, {}", form.index, threads_text(threads));
    Trial trial(bench_, system, setup_for(threads), 0);
    const PhaseResult result =
        trial.run(find_workload("insert"), Distribution::uniform, config_.records);
    figure.rows.push_back({group, system.name, {bench::throughput(result), 0}});
    if (threads == 1) {
      add_dimms(figure, group, system, [](const DimmInserts& row) {
        return std::vector<double>{row.per_second, 0};
      });
    }
    compare_with_plain(figure, group, form.index);
  }
}

void Round::latency(Figure& figure, const System& system) {
  figure.x_axis = "latency, ns";
  figure.y_axis = "share of the operations";
  const Form form = form_of(system.name);
  Trial trial(bench_, system, setup_for(1), 0);
  const auto add = [&](const char* operation, const char* workload, std::uint64_t count) {
    const PhaseResult result = trial.run(find_workload(workload), Distribution::uniform, count);
    const auto percentile = [&](double share) {
      return static_cast<double>(result.latency.percentile(share));
    };
    const std::string group = fmt::format("{}, {}", form.index, operation);
    figure.rows.push_back({group,
                           system.name,
                           {percentile(50), percentile(90), percentile(99), percentile(99.9),
                            1e9 / bench::throughput(result)}});
    figure.lines.push_back({group, system.name, distribution_of(result.latency)});
  };
  add("insert", "insert", config_.records);
  add("read", "get", config_.reads);
}

Round::Budgeted Round::insert_with(const System& system, std::uint64_t threads, std::string name,
                                   std::uint64_t budget) {
  Setup setup = setup_for(threads);
  setup.dram_budget = budget;
  Trial trial(bench_, system, setup, 0);
  const PhaseResult result =
      trial.run(find_workload("insert"), Distribution::uniform, config_.records);
  return {std::move(name), budget, bench::throughput(result),
          trial.footprint().dram_bytes.value_or(0)};
}

std::pair<Round::Budgeted, Round::Budgeted> Round::none_and_all(const System& system,
                                                                std::uint64_t threads) {
  return {insert_with(system, threads, "none", 0),
          insert_with(system, threads, "all", setup_for(threads).dram_budget)};
}

void Round::budgets(Figure& figure, const System& system) {
  for (const std::uint64_t threads : threads_for(system, config_.threads)) {
    const auto [none, all] = none_and_all(system, threads);
    const double slower = std::min(none.throughput, all.throughput);
    const auto add = [&, &none = none](const Budgeted& one) {
      figure.rows.push_back(
          {fmt::format("{}, {}", system.name, threads_text(threads)),
           one.name,
           {one.throughput, slower / one.throughput, static_cast<double>(one.budget),
            static_cast<double>(one.dram) - static_cast<double>(none.dram)}});
    };
    const std::uint64_t full = all.dram - std::min(all.dram, none.dram);
    add(none);
    for (const std::uint64_t share : config_.shares)
      add(insert_with(system, threads, fmt::format("{} %", share), full * share / 100));
    add({all.name, full, all.throughput, all.dram});
  }
}

void Round::budget_traffic(Figure& figure, const System& system) {
  for (const std::uint64_t threads : threads_for(system, config_.threads)) {
    const auto [none, all] = none_and_all(system, threads);
    const std::uint64_t full = all.dram - std::min(all.dram, none.dram);
    const auto add = [&](const std::string& name, std::uint64_t budget) {
      Setup setup = setup_for(threads);
      setup.dram_budget = budget;
      const Cost cost = cost_of_insert(system, setup);
      figure.rows.push_back({fmt::format("{}, {}", system.name, threads_text(threads)),
                             name,
                             {cost.media_written, cost.media_read, cost.fences}});
    };
    add(none.name, 0);
    for (const std::uint64_t share : config_.shares)
      add(fmt::format("{} %", share), full * share / 100);
    add(all.name, all.budget);
  }
}

Round::Cost Round::cost_of_insert(const System& system, Setup setup, bool log) {
  const auto meter = make_meter({false, config_.media_unit, cache_bytes(config_), log});
  setup.domain = DomainChoice::memory_controller;
  Trial trial(bench_, system, setup, 0, meter.get());
  trial.run(find_workload("insert"), Distribution::uniform, config_.records);
  const std::vector<Count> counts = meter->stop();
  const auto each = [&](std::string_view name) {
    std::uint64_t sum = 0;
    for (const Count& count : counts) sum += count.name == name ? count.value : 0;
    return ratio(sum, config_.records);
  };
  return {each("media bytes written"), each("media bytes read"), each("media bytes read to modify"),
          each("lines flushed"), each("fences")};
}

Setup Round::setup_for(std::uint64_t threads) const {
  Setup setup;
  setup.max_records = config_.records;
  setup.threads = static_cast<unsigned>(threads);
  setup.dram_budget = config_.dram_budget;
  return setup;
}

}  // namespace perdix::bench::spot_on
