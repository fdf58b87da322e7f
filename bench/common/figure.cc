#include "common/figure.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include "common/html.h"
#include "common/median.h"
#include "terminal/format.h"

namespace perdix::bench {
namespace {

std::string text_of(double value, Unit unit) {
  if (std::isnan(value)) return "-";
  switch (unit) {
    case Unit::nanoseconds: return terminal::format_nanoseconds(value);
    case Unit::operations_per_second:
      return value < 1e5 ? terminal::format_number(value / 1e3) + " k/s"
                         : terminal::format_number(value / 1e6) + " M/s";
    case Unit::bytes: return terminal::format_number(value) + " B";
    case Unit::size: return terminal::format_bytes(value);
    case Unit::times: return terminal::format_number(value) + "x";
    case Unit::total: return terminal::format_count(static_cast<std::uint64_t>(value));
    case Unit::ratio: return value == 0 ? "-" : fmt::format("{:.2f}", value);
    case Unit::count: return fmt::format("{:.{}f}", value, value < 1000 ? 3 : 0);
  }
  return {};
}

/// The number of a system in the figure. It selects the colour.
std::size_t number_of(const Figure& figure, const std::string& system) {
  std::vector<std::string> names;
  for (const Row& other : figure.rows) {
    if (std::ranges::find(names, other.system) == names.end()) names.push_back(other.system);
  }
  return static_cast<std::size_t>(std::ranges::find(names, system) - names.begin());
}

/// The bars of a metric, without the rows whose value is unknown.
std::vector<Bar> bars_of(const Figure& figure, std::size_t metric) {
  std::vector<Bar> bars;
  for (const Row& row : figure.rows) {
    const double value = row.values[metric];
    if (std::isnan(value)) continue;
    bars.push_back({row.group, row.system, value, text_of(value, figure.metrics[metric].unit),
                    html_colour(number_of(figure, row.system))});
  }
  return bars;
}

std::vector<std::string> groups_of(const std::vector<Line>& lines) {
  std::vector<std::string> groups;
  for (const Line& line : lines) {
    if (std::ranges::find(groups, line.group) == groups.end()) groups.push_back(line.group);
  }
  return groups;
}

std::vector<Curve> curves_of(const Figure& figure, const std::string& group) {
  std::vector<Curve> curves;
  for (const Line& line : figure.lines) {
    if (line.group == group)
      curves.push_back({line.system, line.points, html_colour(number_of(figure, line.system))});
  }
  return curves;
}

/// The medians of all rounds for a line's points.
void take_medians(const std::vector<std::vector<Figure>>& rounds, std::size_t figure, Line& line) {
  for (std::size_t p = 0; p < line.points.size(); ++p) {
    std::vector<double> values;
    for (const auto& round : rounds) {
      for (const Line& other : round[figure].lines) {
        if (other.group == line.group && other.system == line.system)
          values.push_back(other.points[p].second);
      }
    }
    line.points[p].second = median(std::move(values));
  }
}

/// The value of metric `number` that a round has for the row's system and group.
void collect(const Figure& figure, const Row& wanted, std::size_t number,
             std::vector<double>& values) {
  for (const Row& row : figure.rows) {
    if (row.group == wanted.group && row.system == wanted.system)
      values.push_back(row.values[number]);
  }
}

/// The width of a column of names; 0 if all are empty.
std::size_t width_of(const Figure& figure, std::string Row::*name) {
  std::size_t longest = 0;
  for (const Row& row : figure.rows) longest = std::max(longest, (row.*name).size());
  return longest == 0 ? 0 : std::max<std::size_t>(longest + 1, 26);
}

}  // namespace

std::string threads_text(std::uint64_t threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

Figure by_group(Figure figure) {
  std::vector<std::string> groups;
  for (const Row& row : figure.rows) {
    if (std::ranges::find(groups, row.group) == groups.end()) groups.push_back(row.group);
  }
  std::ranges::stable_sort(figure.rows, {}, [&](const Row& row) {
    return std::ranges::find(groups, row.group) - groups.begin();
  });
  return figure;
}

std::vector<Figure> medians(const std::vector<std::vector<Figure>>& rounds) {
  std::vector<Figure> result = rounds.front();
  for (std::size_t f = 0; f < result.size(); ++f) {
    for (Row& row : result[f].rows) {
      for (std::size_t v = 0; v < row.values.size(); ++v) {
        std::vector<double> values;
        for (const auto& round : rounds) collect(round[f], row, v, values);
        row.values[v] = median(std::move(values));
      }
    }
    for (Line& line : result[f].lines) take_medians(rounds, f, line);
  }
  return result;
}

void write_table(std::ostream& out, const Figure& figure) {
  const std::size_t groups = width_of(figure, &Row::group);
  const std::size_t systems = width_of(figure, &Row::system);
  fmt::print(out, "\n{}\n{:{}}", figure.title, "", groups + systems);
  for (const Metric& metric : figure.metrics) fmt::print(out, "{:>16}", metric.name);
  out << '\n';
  for (const Row& row : figure.rows) {
    fmt::print(out, "{:<{}}{:<{}}", row.group, groups, row.system, systems);
    for (std::size_t i = 0; i < row.values.size(); ++i)
      fmt::print(out, "{:>16}", text_of(row.values[i], figure.metrics[i].unit));
    out << '\n';
  }
}

void write_plot(std::ostream& out, const Figure& figure) {
  for (std::size_t i = 0; i < figure.plotted; ++i) {
    write_title(out, figure.title + ": " + figure.metrics[i].name);
    write_bars(out, bars_of(figure, i));
  }
  for (const std::string& group : groups_of(figure.lines)) {
    write_title(out, figure.title + ": " + group);
    write_curves(out, curves_of(figure, group), figure.x_axis, figure.y_axis);
  }
}

}  // namespace perdix::bench
