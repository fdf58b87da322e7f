#include <ostream>
#include <sstream>

#include <fmt/format.h>

#include "common/html.h"
#include "resume/report.h"
#include "terminal/format.h"

namespace perdix::bench::resumption {
namespace {

using terminal::format_bytes;
using terminal::format_count;
using terminal::format_nanoseconds;
using terminal::format_number;

std::vector<Bar> rebuild_bars(const Report& report) {
  std::vector<Bar> bars;
  for (const RebuildRow& row : report.rebuild) {
    const double seconds = row.rebuilt_seconds();
    bars.push_back({row.buffers ? "a write buffer for each leaf" : "no write buffers",
                    format_count(row.keys), seconds,
                    fmt::format("{}  ({} M keys/s)", format_nanoseconds(seconds * 1e9),
                                format_number(row.keys_per_second() / 1e6)),
                    html_colour(row.buffers ? 1 : 0)});
  }
  std::ranges::stable_sort(bars, {}, &Bar::group);
  return bars;
}

std::vector<Bar> first_answer_bars(const Report& report) {
  std::vector<Bar> bars;
  for (const ServiceRow& row : report.service) {
    const auto add = [&](const char* name, const ServingLog& log, const char* colour) {
      const double seconds = log.first_answer_seconds();
      bars.push_back({format_count(row.records) + " records in the log", name, seconds,
                      fmt::format("{}  ({})", format_nanoseconds(seconds * 1e9),
                                  format_bytes(static_cast<double>(log.log_bytes))),
                      colour});
    };
    add("structured", row.structured, html_colour(0));
    add("plain", row.plain, html_colour(5));
  }
  return bars;
}

std::vector<Curve> answer_curves(const Report& report) {
  std::vector<Curve> curves;
  std::size_t colour = 0;
  for (const ServiceRow& row : report.service) {
    const auto add = [&](const char* name, const ServingLog& log, bool dashed) {
      Curve curve{fmt::format("{}, {} keys", name, format_count(row.keys)),
                  {},
                  html_colour(colour),
                  dashed};
      for (std::size_t i = 0; i < report.config.within.size(); ++i) {
        curve.points.emplace_back(static_cast<double>(report.config.within[i]),
                                  static_cast<double>(log.answers(i)));
      }
      curves.push_back(std::move(curve));
    };
    add("structured", row.structured, false);
    add("plain", row.plain, true);
    ++colour;
  }
  return curves;
}

}  // namespace

void write_html(std::ostream& out, const Report& report) {
  begin_html(out, "Restart of SpTree after SIGKILL");
  if (const std::uint64_t lost = report.wrong_answers(); lost != 0)
    write_problem(out, format_count(lost) + " answers were wrong or lost");
  write_title(out, "Time until the DRAM layers are back, while the index is idle");
  write_bars(out, rebuild_bars(report));
  write_title(out, "Time until the first answer");
  write_bars(out, first_answer_bars(report));
  write_title(out, "Lookups answered since the restart");
  write_curves(out, answer_curves(report), "milliseconds since the restart", "lookups");
  std::ostringstream tables;
  write_text(tables, report);
  end_html(out, tables.str());
}

}  // namespace perdix::bench::resumption
