#include "ycsb/results.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/median.h"

namespace perdix::bench {
namespace {

double throughput(const Round& round) {
  return static_cast<double>(round.operations) / std::max(round.seconds, 1e-9);
}

// How many times better a round is than the baseline's.
double round_ratio(const Round& round, const Round& baseline) {
  if (round.reopened) {
    return baseline.reopened->first_answer_seconds / round.reopened->first_answer_seconds;
  }
  return throughput(round) / throughput(baseline);
}

std::optional<double> median_ratio(const Result& result, const Result* baseline) {
  if (baseline == nullptr) return std::nullopt;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(result.rounds.size(), baseline->rounds.size()); ++i) {
    ratios.push_back(round_ratio(result.rounds[i], baseline->rounds[i]));
  }
  return median(std::move(ratios));
}

void append_checksum_problem(const Results& all, const Result& result,
                             std::vector<std::string>& problems) {
  if (result.threads != 1 || result.is_reopen())
    return;  // with more threads, what is read depends on their order
  const Result* first = &result;
  for (const Result& other : all.results) {
    if (other.workload == result.workload && other.threads == 1) {
      first = &other;
      break;
    }
  }
  if (first->rounds.front().checksum == result.rounds.front().checksum) return;
  problems.push_back(fmt::format("{} and {} read different data in workload {}", result.system,
                                 first->system, result.workload));
}

}  // namespace

std::uint64_t Result::operations() const {
  std::uint64_t total = 0;
  for (const Round& round : rounds) total += round.operations;
  return total;
}

double Result::per_operation(const Count& count) const {
  const std::uint64_t by = count.operations > 0 ? count.operations : operations();
  return static_cast<double>(count.value) / static_cast<double>(by);
}

double Result::operations_per_second() const {
  std::vector<double> values;
  for (const Round& round : rounds) values.push_back(throughput(round));
  return median(std::move(values));
}

double Result::nanoseconds_per_operation() const { return threads * 1e9 / operations_per_second(); }

const Result* Results::find(std::string_view system, std::string_view workload,
                            unsigned threads) const {
  for (const Result& result : results) {
    if (result.system == system && result.workload == workload && result.threads == threads)
      return &result;
  }
  return nullptr;
}

std::optional<double> Results::ratio(const Result& result) const {
  return median_ratio(result, find(config.baseline, result.workload, result.threads));
}

std::optional<double> Results::scaling(const Result& result) const {
  const unsigned first = config.threads.front();
  if (result.threads == first) return std::nullopt;
  return median_ratio(result, find(result.system, result.workload, first));
}

std::vector<std::string> Results::problems() const {
  std::vector<std::string> problems;
  for (const Result& result : results) {
    std::uint64_t wrong = 0;
    std::uint64_t lost = 0;
    for (const Round& round : result.rounds) {
      wrong += round.wrong;
      if (round.reopened) lost += round.reopened->lost;
    }
    if (wrong > 0) {
      problems.push_back(fmt::format("{}: {} operations of workload {} gave a wrong answer",
                                     result.system, wrong, result.workload));
    }
    if (lost > 0)
      problems.push_back(fmt::format("{}: {} records were lost by SIGKILL", result.system, lost));
    append_checksum_problem(*this, result, problems);
  }
  return problems;
}

std::vector<Figure> summaries_of(const Results& results) {
  std::vector<Figure> summaries;
  const Config& config = results.config;
  const auto add = [&](const std::string& name, const std::string& title, unsigned threads,
                       Unit unit, auto value) {
    Figure figure{name, title, {}, {}, 0};
    for (const std::string& system : config.systems) figure.metrics.push_back({system, unit});
    for (const Workload& workload : workloads()) {
      Row row{fmt::format("{}: {}", workload.name, workload.title), "", {}};
      for (const std::string& system : config.systems) {
        const Result* result = results.find(system, workload.name, threads);
        row.values.push_back(result == nullptr ? kUnknown : value(*result));
      }
      const bool measured = std::ranges::any_of(row.values, [](double v) { return v == v; });
      if (measured && workload.phase != PhaseKind::reopen) figure.rows.push_back(std::move(row));
    }
    summaries.push_back(std::move(figure));
  };
  for (const unsigned threads : config.threads) {
    const std::string text = threads_text(threads);
    add("summary, " + text, "throughput, " + text, threads, Unit::operations_per_second,
        [](const Result& result) { return result.operations_per_second(); });
    if (threads == config.threads.front()) continue;
    add("scaling, " + text, "the same by that of " + threads_text(config.threads.front()), threads,
        Unit::times, [&](const Result& r) { return results.scaling(r).value_or(kUnknown); });
  }
  return summaries;
}

}  // namespace perdix::bench
