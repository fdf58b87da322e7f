// The report as a page of its own: bars per workload, drawn as inline SVG, and the tables behind
// them.
#include <algorithm>
#include <array>
#include <functional>
#include <ostream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include "terminal/format.h"
#include "ycsb/report.h"

namespace perdix::bench {
namespace {

using terminal::format_nanoseconds;
using terminal::format_number;

// Colours that people with colour blindness can tell apart (Okabe and Ito).
constexpr std::array<const char*, 7> kColours = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                                 "#56b4e9", "#d55e00", "#999999"};

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>perdix bench</title><style>
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; color: #222; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2.2rem }
svg { width: 100%; height: auto } svg text { font: 12px system-ui, sans-serif; fill: #222 }
pre { background: #f5f5f5; padding: 1rem; overflow-x: auto; font-size: 12.5px }
.problem { color: #b00020; font-weight: 600 }
</style></head><body>
)";

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

struct Bar {
  std::string group;  ///< bars of one group stand together under its name
  std::string label;
  double value = 0;
  std::string text;  ///< the value as people read it
  const char* colour = kColours[0];
};

// Horizontal bars from zero, all to one scale, groups apart.
void write_bars(std::ostream& out, const std::vector<Bar>& bars) {
  constexpr int kBarHeight = 18;
  constexpr int kGroupGap = 26;
  constexpr int kLeft = 110;
  constexpr int kWidth = 700;
  double longest = 0;
  int height = 0;
  std::string_view group;
  for (const Bar& bar : bars) {
    longest = std::max(longest, bar.value);
    height += kBarHeight + (bar.group != group ? kGroupGap : 0);
    group = bar.group;
  }
  fmt::print(out, "<svg viewBox=\"0 0 920 {}\" role=\"img\">\n", height + 4);
  int y = 0;
  group = {};
  for (const Bar& bar : bars) {
    if (bar.group != group) {
      y += kGroupGap;
      fmt::print(out, "<text x=\"0\" y=\"{}\" font-weight=\"bold\">{}</text>\n", y - 6,
                 escape(bar.group));
      group = bar.group;
    }
    const double width = longest > 0 ? bar.value / longest * kWidth : 0;
    fmt::print(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kLeft - 8, y + 13,
               escape(bar.label));
    fmt::print(out, "<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>", kLeft,
               y + 2, width, kBarHeight - 4, bar.colour);
    fmt::print(out, "<text x=\"{:.1f}\" y=\"{}\">{}</text>\n", kLeft + width + 6, y + 13,
               escape(bar.text));
    y += kBarHeight;
  }
  out << "</svg>\n";
}

const char* colour_of(const Report& report, std::string_view engine) {
  const auto& engines = report.config.engines;
  const auto at = static_cast<std::size_t>(std::ranges::find(engines, engine) - engines.begin());
  return kColours[at % kColours.size()];
}

using Measure = std::function<std::pair<double, std::string>(const Result&)>;

// One plot: a group of bars for each workload that `measure` makes sense for.
void write_plot(std::ostream& out, const Report& report, const std::string& title, unsigned threads,
                const std::function<bool(const Workload&)>& wanted, const Measure& measure) {
  std::vector<Bar> bars;
  for (const Workload& workload : workloads()) {
    if (!wanted(workload)) continue;
    for (const std::string& engine : report.config.engines) {
      const Result* result = report.find(engine, workload.name, threads);
      if (result == nullptr) continue;
      const auto [value, text] = measure(*result);
      bars.push_back({fmt::format("{}: {}", workload.name, workload.title), engine, value, text,
                      colour_of(report, engine)});
    }
  }
  if (bars.empty()) return;
  fmt::print(out, "<h2>{}, {} thread{}</h2>\n", escape(title), threads, threads == 1 ? "" : "s");
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
  const double bytes = static_cast<double>(size.own_stored.value_or(size.files)) /
                       static_cast<double>(std::max<std::uint64_t>(size.records, 1));
  return {bytes, format_number(bytes)};
}

std::pair<double, std::string> dram_per_pair(const Result& result) {
  const Footprint& size = result.rounds.front().footprint;
  const double bytes = static_cast<double>(size.own_dram.value_or(size.resident)) /
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
  out << kHead << "<h1>perdix bench</h1>\n";
  for (const std::string& problem : report.problems())
    fmt::print(out, "<p class=\"problem\">{}</p>\n", escape(problem));
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
  out << "<h2>All figures</h2>\n<pre>" << escape(tables.str()) << "</pre>\n</body></html>\n";
}

}  // namespace perdix::bench
