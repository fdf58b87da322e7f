// Figures of a paper as tables: what systems did, in groups, with some metrics each. They are
// written as text, JSON and bars.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace perdix::bench {

enum class Unit : std::uint8_t { nanoseconds, operations_per_second, bytes, ratio, count };

struct Metric {
  std::string name;
  Unit unit = Unit::nanoseconds;
};

struct Row {
  std::string group;  ///< what the systems did, or with how much
  std::string system;
  std::vector<double> values;  ///< one for each metric; NaN where it is not known
};

/// A curve of a system. The curves of a group are one plot.
struct Line {
  std::string group;
  std::string system;
  std::vector<std::pair<double, double>> points;  ///< the same x in all rounds
};

struct Figure {
  std::string name;
  std::string title;
  std::vector<Metric> metrics;
  std::vector<Row> rows;
  std::size_t plotted = 1;       ///< so many metrics from the first on
  std::vector<Line> lines = {};  ///< plotted too, on axes that are logarithmic; not in tables
  std::string x_axis = {};
  std::string y_axis = {};
};

/// The rows of a group beside each other, groups in the order of their first rows.
Figure by_group(Figure figure);

/// The figures of the first round, with the medians of the values that the same system has in
/// the same group in all rounds.
std::vector<Figure> medians(const std::vector<std::vector<Figure>>& rounds);

void write_table(std::ostream& out, const Figure& figure);

/// For each metric that is plotted a title and bars; then the plots of its lines.
void write_plot(std::ostream& out, const Figure& figure);

/// By name: the title, an object for each row and, where there are some, one for each line.
nlohmann::json to_json(const std::vector<Figure>& figures);

}  // namespace perdix::bench
