// The rows of a figure while it is made: they still have their coordinates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/figure.h"
#include "figure/file.h"

namespace perdix::bench {

/// A row, and what was measured for it.
struct FigurePoint {
  Coordinates at;
  std::string group;
  std::string row;
  std::vector<double> values;  ///< one for each column
  std::optional<Line> curve;
};

/// Adds the published rows of the systems that have points, for values of axes that these have.
void add_published(const FigureFile& file, const FigureSpec& spec,
                   std::vector<FigurePoint>& points);

/// Replaces the metrics of columns that are ratios or differences by these.
void compute_columns(const FigureFile& file, const FigureSpec& spec,
                     std::vector<FigurePoint>& points);

/// Adds a point for each row, with the mean of its values in all groups.
void add_averages(std::vector<FigurePoint>& points);

/// The points of a group stand beside each other.
Figure figure_of(const FigureSpec& spec, const std::vector<FigurePoint>& points);

/// What a check compares with its bound: the value of a point, or its ratio to another one. NaN if
/// there is no such point.
double value_of(const CheckSpec& check, const FigureSpec& spec,
                const std::vector<FigurePoint>& points);

}  // namespace perdix::bench
