// Figures of a paper as tables: a row for each system in each group, with a few metrics. They are
// written as text, as JSON and as bars.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace perdix::bench {

enum class Unit : std::uint8_t {
  nanoseconds,
  operations_per_second,
  bytes,  ///< of one pair or operation
  size,   ///< of all
  ratio,
  times,  ///< a ratio to a baseline
  count,  ///< of one operation
  total,  ///< a count of all
};

/// The value of what was not measured.
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// "2 threads", as rows and groups are named.
std::string threads_text(std::uint64_t threads);

struct Metric {
  std::string name;
  Unit unit = Unit::nanoseconds;
};

struct Row {
  std::string group;  ///< the operation or the size that the row is about; may be empty
  std::string system;
  std::vector<double> values;  ///< one for each metric; may be kUnknown
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
  std::size_t plotted = 1;       ///< number of metrics, from the first on
  std::vector<Line> lines = {};  ///< plotted too, on axes that are logarithmic; not in tables
  std::string x_axis = {};
  std::string y_axis = {};
};

/// The rows of a group beside each other, groups in the order of their first rows.
Figure by_group(Figure figure);

/// Returns the figures of the first round, in which each value is the median over all rounds for
/// the same system and group.
std::vector<Figure> medians(const std::vector<std::vector<Figure>>& rounds);

/// The medians of `repeat` rounds; `round(i)` returns the figures of round i.
template <class Round>
std::vector<Figure> medians_of(std::uint64_t repeat, Round round) {
  std::vector<std::vector<Figure>> rounds;
  for (std::uint64_t i = 0; i < repeat; ++i) rounds.push_back(round(i));
  return medians(rounds);
}

void write_table(std::ostream& out, const Figure& figure);

/// For each metric that is plotted a title and bars; then the plots of its lines.
void write_plot(std::ostream& out, const Figure& figure);

}  // namespace perdix::bench
