// Figures of a paper as tables: what contenders did, in groups, with some metrics each. They are
// written as text, JSON and bars.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace perdix::bench {

enum class Unit : std::uint8_t { nanoseconds, operations_per_second, bytes, ratio, count };

struct Metric {
  std::string name;
  Unit unit = Unit::nanoseconds;
};

struct Row {
  std::string group;  ///< what the contenders did, or with how much
  std::string contender;
  std::vector<double> values;  ///< one for each metric
};

struct Figure {
  std::string name;
  std::string title;
  std::vector<Metric> metrics;  ///< the first one is plotted
  std::vector<Row> rows;
};

/// The rows of a group beside each other, groups in the order of their first rows.
Figure by_group(Figure figure);

/// The figures of the first round, with the medians of the values that the same contender has in
/// the same group in all rounds.
std::vector<Figure> medians(const std::vector<std::vector<Figure>>& rounds);

void write_table(std::ostream& out, const Figure& figure);

/// Its title, and bars for its first metric.
void write_plot(std::ostream& out, const Figure& figure);

/// By name: the title, and an object for each row.
nlohmann::json to_json(const std::vector<Figure>& figures);

}  // namespace perdix::bench
