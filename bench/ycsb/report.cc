#include "ycsb/report.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "common/median.h"
#include "terminal/format.h"
#include "ycsb/driver.h"

namespace perdix::bench {
namespace {

using nlohmann::json;
using terminal::format_count;

/// One phase with one number of threads: what all systems that took part have done.
struct Group {
  const Results& all;
  const Workload& workload;
  unsigned threads;
  std::vector<const Result*> results;

  std::string name(std::string_view what) const {
    return fmt::format("{}{}, {}", workload.name, what, threads_text(threads));
  }

  /// A row for each system, with values(result).
  Figure figure(std::string_view what, std::string_view title, std::vector<Metric> metrics,
                std::size_t plotted,
                const std::function<std::vector<double>(const Result&)>& values) const {
    Figure figure{name(what),
                  fmt::format("{}: {}, {}", workload.name, title, threads_text(threads)),
                  std::move(metrics),
                  {},
                  plotted};
    for (const Result* result : results)
      figure.rows.push_back({"", result->system, values(*result)});
    return figure;
  }

  Metric ratio() const { return {"vs " + all.config.baseline, Unit::times}; }
};

Group group_of(const Results& all, const Workload& workload, unsigned threads) {
  Group group{all, workload, threads, {}};
  for (const std::string& system : all.config.systems)
    if (const Result* result = all.find(system, workload.name, threads))
      group.results.push_back(result);
  return group;
}

Figure times_of(const Group& group) {
  using enum Unit;
  const Workload& workload = group.workload;
  const auto distribution = group.all.config.distribution.value_or(workload.distribution);
  std::string title(workload.title);
  if (workload.phase == PhaseKind::mix) title += fmt::format(", {}", to_string(distribution));
  return group.figure("", title,
                      {{"throughput", operations_per_second},
                       {"p99", nanoseconds},
                       {"p50", nanoseconds},
                       {"p99.9", nanoseconds},
                       {"mean", nanoseconds},
                       group.ratio()},
                      2, [&](const Result& result) {
                        const auto percentile = [&](double p) {
                          return static_cast<double>(result.latency.percentile(p));
                        };
                        return std::vector{result.operations_per_second(),
                                           percentile(99),
                                           percentile(50),
                                           percentile(99.9),
                                           result.nanoseconds_per_operation(),
                                           group.all.ratio(result).value_or(kUnknown)};
                      });
}

Figure sizes_of(const Group& group) {
  using enum Unit;
  return group.figure(
      " memory", "memory",
      {{"DRAM a pair", bytes},
       {"stored a pair", bytes},
       {"DRAM", size},
       {"DRAM (RSS)", size},
       {"stored", size},
       {"files", size}},
      2, [](const Result& result) {
        const Footprint& footprint = result.rounds.front().footprint;
        const auto known = [](std::optional<std::uint64_t> bytes) {
          return bytes ? static_cast<double>(*bytes) : kUnknown;
        };
        const auto resident = static_cast<double>(footprint.resident);
        const auto files = static_cast<double>(footprint.files);
        const auto pairs = static_cast<double>(std::max<std::uint64_t>(footprint.records, 1));
        const OwnFootprint& own = footprint.own;
        const double of_files = files == 0 ? kUnknown : files;
        const double stored = files != 0 && own.stored_bytes ? known(own.stored_bytes) : of_files;
        return std::vector{(own.dram_bytes ? known(own.dram_bytes) : resident) / pairs,
                           stored / pairs,
                           known(own.dram_bytes),
                           resident,
                           known(own.stored_bytes),
                           files};
      });
}

Figure reopenings_of(const Group& group) {
  using enum Unit;
  return group.figure("", group.workload.title,
                      {{"first answer", nanoseconds},
                       {"open", nanoseconds},
                       {"all back", nanoseconds},
                       {"keys", operations_per_second},
                       {"lost", total},
                       group.ratio()},
                      1, [&](const Result& result) {
                        const auto middle = [&](double Reopened::*seconds) {
                          std::vector<double> values;
                          for (const Round& round : result.rounds)
                            values.push_back(*round.reopened.*seconds);
                          return median(std::move(values));
                        };
                        const double all_back = middle(&Reopened::resumed_seconds);
                        std::uint64_t lost = 0;
                        for (const Round& round : result.rounds) lost += round.reopened->lost;
                        return std::vector{
                            middle(&Reopened::first_answer_seconds) * 1e9,
                            middle(&Reopened::open_seconds) * 1e9,
                            all_back * 1e9,
                            static_cast<double>(result.rounds.front().reopened->records) / all_back,
                            static_cast<double>(lost),
                            group.all.ratio(result).value_or(kUnknown)};
                      });
}

/// What was counted, per operation: a column for each kind of operation.
Figure counts_of(const Group& group, const Result& result) {
  Figure figure{group.name(" counts of " + result.system),
                fmt::format("{}: counts of {}, per operation, {}", group.workload.name,
                            result.system, threads_text(group.threads)),
                {},
                {},
                0};
  const auto number_in = [](auto& known, auto named, const std::string& name, auto added) {
    const auto found = std::ranges::find(known, name, named);
    const auto number = static_cast<std::size_t>(found - known.begin());
    if (found == known.end()) known.push_back(std::move(added));
    return number;
  };
  for (const Count& count : result.counts)
    number_in(figure.metrics, &Metric::name, count.operation, Metric{count.operation, Unit::count});
  for (const Count& count : result.counts) {
    const std::size_t row =
        number_in(figure.rows, &Row::system, count.name,
                  Row{"", count.name, std::vector(figure.metrics.size(), kUnknown)});
    const std::size_t column = number_in(figure.metrics, &Metric::name, count.operation, Metric{});
    figure.rows[row].values[column] = result.per_operation(count);
  }
  return figure;
}

std::vector<Figure> figures_of(const Results& results) {
  std::vector<Figure> figures;
  for (const unsigned threads : results.config.threads) {
    for (const Workload& workload : workloads()) {
      const Group group = group_of(results, workload, threads);
      if (group.results.empty()) continue;
      const bool reopens = group.results.front()->is_reopen();
      figures.push_back(reopens ? reopenings_of(group) : times_of(group));
      if (workload.phase == PhaseKind::load) figures.push_back(sizes_of(group));
      for (const Result* result : group.results)
        if (!result->counts.empty()) figures.push_back(counts_of(group, *result));
    }
  }
  std::ranges::move(summaries_of(results), std::back_inserter(figures));
  return figures;
}

json to_json(const std::optional<std::uint64_t>& value) {
  return value ? json(*value) : json(nullptr);
}

json to_json(const Footprint& size) {
  return {{"records", size.records},
          {"dram_bytes", to_json(size.own.dram_bytes)},
          {"dram_bytes_rss", size.resident},
          {"stored_bytes", to_json(size.own.stored_bytes)},
          {"file_bytes", size.files}};
}

json to_json(const Round& round) {
  if (round.reopened) {
    return {{"open_seconds", round.reopened->open_seconds},
            {"first_answer_seconds", round.reopened->first_answer_seconds},
            {"resumed_seconds", round.reopened->resumed_seconds},
            {"records", round.reopened->records},
            {"lost", round.reopened->lost}};
  }
  return {{"seconds", round.seconds},
          {"operations", round.operations},
          {"wrong", round.wrong},
          {"footprint", to_json(round.footprint)}};
}

void add_throughput(json& out, const Results& all, const Result& result) {
  out["operations_per_second"] = result.operations_per_second();
  out["nanoseconds_per_operation"] = result.nanoseconds_per_operation();
  out["latency_ns"] = {
      {"samples", result.latency.count()},        {"mean", result.latency.mean()},
      {"p50", result.latency.percentile(50)},     {"p99", result.latency.percentile(99)},
      {"p99.9", result.latency.percentile(99.9)}, {"max", result.latency.max()}};
  out["distribution"] =
      to_string(all.config.distribution.value_or(find_workload(result.workload).distribution));
  for (const Count& count : result.counts)
    out["per_operation"][count.operation][count.name] = result.per_operation(count);
}

json to_json(const Results& all, const Result& result) {
  json out = {
      {"system", result.system}, {"workload", result.workload}, {"threads", result.threads}};
  if (!result.is_reopen()) add_throughput(out, all, result);
  if (const auto ratio = all.ratio(result)) out["ratio_to_baseline"] = *ratio;
  if (const auto scaling = all.scaling(result)) out["ratio_to_first_threads"] = *scaling;
  for (const Round& round : result.rounds) out["rounds"].push_back(to_json(round));
  return out;
}

json to_json(const Config& config) {
  const Shape& shape = config.data.shape;
  return {{"systems", config.systems},
          {"baseline", config.baseline},
          {"records", config.records},
          {"operations", config.operations},
          {"threads", config.threads},
          {"keys", {{"kind", to_string(shape.key_kind)}, {"bytes", shape.key_size}}},
          {"values", {{"kind", to_string(shape.value_kind)}, {"bytes", shape.value_size}}},
          {"key_order", config.data.order == KeyOrder::random ? "random" : "sequential"},
          {"seed", config.seed},
          {"repeat", config.repeat},
          {"sample_every", config.sample_every}};
}

std::string sizes_of(const Config& config) {
  const Shape& shape = config.data.shape;
  const auto kind = [](Kind k, std::size_t size) {
    return k == Kind::u64 ? std::string("u64") : fmt::format("{} bytes", size);
  };
  return fmt::format("{} records ({} -> {}), {} operations per workload, keys in {} order, seed {}",
                     format_count(config.records), kind(shape.key_kind, shape.key_size),
                     kind(shape.value_kind, shape.value_size), format_count(config.operations),
                     config.data.order == KeyOrder::random ? "random" : "sequential", config.seed);
}

}  // namespace

Report report_of(const Results& results) {
  const Config& config = results.config;
  Report report;
  report.title = "perdix bench";
  report.settings = to_json(config);
  report.sizes = sizes_of(config);
  report.repeat = config.repeat;
  report.environment = results.environment;
  report.systems = results.systems;
  report.notes = {fmt::format("latencies include {:.0f} ns of looking at the clock, {} is timed",
                              results.clock_nanoseconds,
                              results.durability == Durability::power
                                  ? "each operation"
                                  : fmt::format("1 operation in {}", config.sample_every))};
  report.figures = figures_of(results);
  report.named_problems = results.problems();
  report.more = {{"durability", results.durability == Durability::power ? "power" : "process"},
                 {"clock_nanoseconds", results.clock_nanoseconds},
                 {"results", json::array()}};
  for (const Result& result : results.results) {
    report.more["results"].push_back(to_json(results, result));
    for (const Round& round : result.rounds)
      report.wrong += round.wrong + (round.reopened ? round.reopened->lost : 0);
  }
  return report;
}

Report run(const Config& config) { return report_of(measure(config)); }

}  // namespace perdix::bench
