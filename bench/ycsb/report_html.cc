// The report as a self-contained page: bars per workload as inline SVG, and the tables behind them.
#include <algorithm>
#include <functional>
#include <ostream>
#include <sstream>

#include <fmt/format.h>

#include "common/html.h"
#include "terminal/format.h"
#include "ycsb/report.h"

namespace perdix::bench {
namespace {

using terminal::format_nanoseconds;
using terminal::format_number;

const char* colour_of(const Report& report, std::string_view system) {
  const auto& systems = report.config.systems;
  const auto at = static_cast<std::size_t>(std::ranges::find(systems, system) - systems.begin());
  return html_colour(at);
}

using Measure = std::function<std::pair<double, std::string>(const Result&)>;

// One plot: a group of bars for each workload that `measure` makes sense for.
void write_plot(std::ostream& out, const Report& report, const std::string& title, unsigned threads,
                const std::function<bool(const Workload&)>& wanted, const Measure& measure) {
  std::vector<Bar> bars;
  for (const Workload& workload : workloads()) {
    if (!wanted(workload)) continue;
    for (const std::string& system : report.config.systems) {
      const Result* result = report.find(system, workload.name, threads);
      if (result == nullptr) continue;
      const auto [value, text] = measure(*result);
      bars.push_back({fmt::format("{}: {}", workload.name, workload.title), system, value, text,
                      colour_of(report, system)});
    }
  }
  if (bars.empty()) return;
  write_title(out, fmt::format("{}, {} thread{}", title, threads, threads == 1 ? "" : "s"));
  write_bars(out, bars);
}

std::pair<double, std::string> throughput(const Report& report, const Result& result) {
  const double rate = result.operations_per_second() / 1e6;
  const auto ratio = report.ratio(result);
  return {rate, format_number(rate) + (ratio ? fmt::format("  ({}x)", format_number(*ratio)) : "")};
}

std::pair<double, std::string> tail_latency(const Result& result) {
  const auto p99 = static_cast<double>(result.latency.percentile(99));
  return {p99, format_nanoseconds(p99)};
}

std::pair<double, std::string> stored_per_pair(const Result& result) {
  const Footprint& size = result.rounds.front().footprint;
  const double bytes = static_cast<double>(size.own.stored_bytes.value_or(size.files)) /
                       static_cast<double>(std::max<std::uint64_t>(size.records, 1));
  return {bytes, format_number(bytes)};
}

std::pair<double, std::string> dram_per_pair(const Result& result) {
  const Footprint& size = result.rounds.front().footprint;
  const double bytes = static_cast<double>(size.own.dram_bytes.value_or(size.resident)) /
                       static_cast<double>(std::max<std::uint64_t>(size.records, 1));
  return {bytes, format_number(bytes)};
}

std::pair<double, std::string> time_to_answer(const Result& result) {
  std::vector<double> answers;
  for (const Round& round : result.rounds) answers.push_back(round.reopened->first_answer_seconds);
  const double seconds = median(std::move(answers));
  return {seconds, format_nanoseconds(seconds * 1e9)};
}

}  // namespace

void write_html(std::ostream& out, const Report& report) {
  begin_html(out, "perdix bench");
  for (const std::string& problem : report.problems()) write_problem(out, problem);
  const auto mix = [](const Workload& w) { return w.phase != PhaseKind::reopen; };
  const auto load = [](const Workload& w) { return w.phase == PhaseKind::load; };
  const auto reopen = [](const Workload& w) { return w.phase == PhaseKind::reopen; };
  for (const unsigned threads : report.config.threads) {
    write_plot(out, report, "Million operations per second (times " + report.config.baseline + ")",
               threads, mix, [&](const Result& result) { return throughput(report, result); });
    write_plot(out, report, "99th percentile of latency", threads, mix, tail_latency);
    write_plot(out, report, "DRAM bytes per pair", threads, load, dram_per_pair);
    write_plot(out, report, "Stored bytes per pair", threads, load, stored_per_pair);
    write_plot(out, report, "Time from opening after SIGKILL to the first answer", threads, reopen,
               time_to_answer);
  }
  std::ostringstream tables;
  write_text(tables, report);
  end_html(out, tables.str());
}

}  // namespace perdix::bench
