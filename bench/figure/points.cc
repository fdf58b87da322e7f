#include "figure/points.h"

#include <algorithm>
#include <cmath>

#include "figure/jobs.h"
#include "figure/metrics.h"

namespace perdix::bench {
namespace {

const Setting* setting_of(const FigureFile& file, std::string_view name) {
  const auto found = std::ranges::find(file.settings, name, &Setting::name);
  return found == file.settings.end() ? nullptr : &*found;
}

/// Coordinates with others in place of those that there are. "first" is the first value of a
/// setting, and texts may have names in them.
Coordinates replaced(const FigureFile& file, Coordinates at, const Coordinates& others) {
  Names names = names_of_system(at.at("system").text());
  names.insert(at.begin(), at.end());
  for (const auto& [name, value] : others) {
    if (!at.contains(name)) continue;
    const Setting* setting = setting_of(file, name);
    if (value == Value("first") && setting != nullptr)
      at.insert_or_assign(name, setting->values.front());
    else
      at.insert_or_assign(name, Value(expand(value.text(), names)));
  }
  return at;
}

bool has_all(const Coordinates& at, const Coordinates& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& one) {
    const auto found = at.find(one.first);
    return found != at.end() && found->second == one.second;
  });
}

/// The highest value of the column at one of the references; NaN if none is there.
double reference_of(const FigureFile& file, const Column& column, std::size_t number,
                    const FigurePoint& point, const std::vector<FigurePoint>& points) {
  double highest = kUnknown;
  for (const Coordinates& others : column.to) {
    const Coordinates wanted = replaced(file, point.at, others);
    const auto found = std::ranges::find(points, wanted, &FigurePoint::at);
    if (found != points.end()) highest = std::fmax(highest, found->values[number]);
  }
  return highest;
}

}  // namespace

void add_published(const FigureFile& file, const FigureSpec& spec,
                   std::vector<FigurePoint>& points) {
  const RunSpec& run = spec.runs.front();
  std::vector<FigurePoint> added;
  for (const Published& row : file.published) {
    const bool fits = std::ranges::any_of(points, [&](const FigurePoint& point) {
      return point.at.at("system") == row.at.at("system") &&
             std::ranges::all_of(run.axes, [&](const std::string& axis) {
               return row.at.contains(axis) && row.at.at(axis) == point.at.at(axis);
             });
    });
    if (!fits) continue;
    Names names = names_of_system(row.at.at("system").text());
    names.insert(row.at.begin(), row.at.end());
    added.push_back({row.at, expand(run.group, names), expand(run.row, names), {}, {}});
    for (const Column& column : spec.columns) {
      const auto found = row.values.find(column.metric);
      added.back().values.push_back(found == row.values.end() ? kUnknown : found->second);
    }
  }
  points.insert(points.end(), added.begin(), added.end());
}

void compute_columns(const FigureFile& file, const FigureSpec& spec,
                     std::vector<FigurePoint>& points) {
  for (std::size_t i = 0; i < spec.columns.size(); ++i) {
    const Column& column = spec.columns[i];
    if (column.form == Column::Form::plain) continue;
    std::vector<double> references;
    for (const FigurePoint& point : points)
      references.push_back(reference_of(file, column, i, point, points));
    for (std::size_t p = 0; p < points.size(); ++p) {
      double& value = points[p].values[i];
      value = column.form == Column::Form::ratio ? value / references[p] : value - references[p];
    }
  }
}

void add_averages(std::vector<FigurePoint>& points) {
  std::vector<FigurePoint> averages;
  for (const FigurePoint& point : points) {
    if (std::ranges::find(averages, point.row, &FigurePoint::row) != averages.end()) continue;
    averages.push_back({point.at, "average", point.row, {}, {}});
    for (std::size_t i = 0; i < point.values.size(); ++i) {
      double sum = 0, number = 0;
      for (const FigurePoint& other : points) {
        if (other.row != point.row) continue;
        sum += other.values[i];
        ++number;
      }
      averages.back().values.push_back(sum / number);
    }
  }
  points.insert(points.end(), averages.begin(), averages.end());
}

Figure figure_of(const FigureSpec& spec, const std::vector<FigurePoint>& points) {
  Figure figure{spec.name, spec.title, {}, {}};
  figure.plotted = spec.plotted;
  figure.x_axis = "latency, ns";
  figure.y_axis = "share of the operations";
  for (const Column& column : spec.columns) {
    const Unit unit =
        column.form == Column::Form::ratio ? Unit::ratio : find_metric(column.metric).unit;
    figure.metrics.push_back({column.name, unit});
  }
  for (const FigurePoint& point : points) {
    figure.rows.push_back({point.group, point.row, point.values});
    if (point.curve) figure.lines.push_back(*point.curve);
  }
  return by_group(std::move(figure));
}

double value_of(const CheckSpec& check, const FigureSpec& spec,
                const std::vector<FigurePoint>& points) {
  const auto column = std::ranges::find(spec.columns, check.column, &Column::name);
  const auto number = static_cast<std::size_t>(column - spec.columns.begin());
  const auto value_at = [&](const Coordinates& wanted) {
    const auto found = std::ranges::find_if(
        points, [&](const FigurePoint& point) { return has_all(point.at, wanted); });
    return found == points.end() ? kUnknown : found->values[number];
  };
  if (check.to.empty()) return value_at(check.of);
  Coordinates other = check.of;
  for (const auto& [name, value] : check.to) other.insert_or_assign(name, value);
  return value_at(check.of) / value_at(other);
}

}  // namespace perdix::bench
