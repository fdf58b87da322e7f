#include "nbtree/report.h"

#include <algorithm>
#include <ostream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include "common/html.h"
#include "terminal/format.h"

namespace perdix::bench::figures {
namespace {

std::string text_of(double value, Unit unit) {
  switch (unit) {
    case Unit::nanoseconds: return terminal::format_nanoseconds(value);
    case Unit::operations_per_second: return terminal::format_number(value / 1e6) + " M/s";
    case Unit::bytes: return terminal::format_number(value) + " B";
    case Unit::ratio: return value == 0 ? "-" : fmt::format("{:.2f}", value);
  }
  return {};
}

void write_figure(std::ostream& out, const Figure& figure) {
  fmt::print(out, "\n{}\n{:<26}{:<26}", figure.title, "", "");
  for (const Metric& metric : figure.metrics) fmt::print(out, "{:>16}", metric.name);
  out << '\n';
  for (const Row& row : figure.rows) {
    fmt::print(out, "{:<26}{:<26}", row.group, row.contender);
    for (std::size_t i = 0; i < row.values.size(); ++i)
      fmt::print(out, "{:>16}", text_of(row.values[i], figure.metrics[i].unit));
    out << '\n';
  }
}

std::string wrong_answers(const Report& report) {
  return terminal::format_count(report.wrong) + " answers were wrong";
}

/// The number of a contender among all of the figure, which decides its colour.
std::size_t number_of(const Figure& figure, const Row& row) {
  std::vector<std::string> names;
  for (const Row& other : figure.rows) {
    if (std::ranges::find(names, other.contender) == names.end()) names.push_back(other.contender);
  }
  return static_cast<std::size_t>(std::ranges::find(names, row.contender) - names.begin());
}

std::vector<Bar> bars_of(const Figure& figure) {
  std::vector<Bar> bars;
  for (const Row& row : figure.rows) {
    bars.push_back({row.group, row.contender, row.values.front(),
                    text_of(row.values.front(), figure.metrics.front().unit),
                    html_colour(number_of(figure, row))});
  }
  return bars;
}

}  // namespace

void write_text(std::ostream& out, const Report& report) {
  const Config& config = report.config;
  fmt::print(out, "{}\n{}\n{} ({}); {} records, {} operations a phase; medians of {} round{}\n",
             report.machine, report.build, report.directory, report.file_system,
             terminal::format_count(config.records), terminal::format_count(config.operations),
             config.repeat, config.repeat == 1 ? "" : "s");
  for (const Figure& figure : report.figures) write_figure(out, figure);
  if (report.wrong != 0) fmt::print(out, "\n{}\n", wrong_answers(report));
}

nlohmann::json to_json(const Report& report) {
  using nlohmann::json;
  const Config& config = report.config;
  json out = {{"config",
               {{"engines", config.engines},
                {"records", config.records},
                {"operations", config.operations},
                {"pairs", config.pairs},
                {"thetas", config.thetas},
                {"write_percents", config.writes},
                {"threads", config.threads},
                {"repeat", config.repeat},
                {"seed", config.seed}}},
              {"directory", report.directory},
              {"file_system", report.file_system},
              {"machine", report.machine},
              {"build", report.build},
              {"figures", json::object()},
              {"wrong", report.wrong}};
  for (const Figure& figure : report.figures) {
    json rows = json::array();
    for (const Row& row : figure.rows) {
      json& added = rows.emplace_back(json{{"group", row.group}, {"contender", row.contender}});
      for (std::size_t i = 0; i < row.values.size(); ++i)
        added[figure.metrics[i].name] = row.values[i];
    }
    out["figures"][figure.name] = {{"title", figure.title}, {"rows", rows}};
  }
  return out;
}

void write_html(std::ostream& out, const Report& report) {
  begin_html(out, "NbTree: the experiments of its paper");
  if (report.wrong != 0) write_problem(out, wrong_answers(report));
  for (const Figure& figure : report.figures) {
    write_title(out, figure.title + ": " + figure.metrics.front().name);
    write_bars(out, bars_of(figure));
  }
  std::ostringstream tables;
  write_text(tables, report);
  end_html(out, tables.str());
}

}  // namespace perdix::bench::figures
