// Pages of plots: a head, inline SVG, and the tables behind it. Nothing is loaded from elsewhere.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perdix::bench {

/// The text as HTML shows it.
std::string escape(std::string_view text);

/// The colour of system `number`, as SVG wants it.
const char* html_colour(std::size_t number);

/// The page up to its heading.
void begin_html(std::ostream& out, const std::string& title);

/// The tables, as text, and the end of the page.
void end_html(std::ostream& out, const std::string& tables);

void write_problem(std::ostream& out, const std::string& problem);

/// Of what follows.
void write_title(std::ostream& out, const std::string& title);

struct Bar {
  std::string group;  ///< bars of one group stand together under its name
  std::string label;
  double value = 0;
  std::string text;  ///< the value as people read it
  const char* colour = html_colour(0);
};

/// Horizontal bars from zero, all to one scale, groups apart.
void write_bars(std::ostream& out, const std::vector<Bar>& bars);

struct Curve {
  std::string label;
  std::vector<std::pair<double, double>> points;  ///< x ascending
  const char* colour = html_colour(0);
  bool dashed = false;
};

/// Curves on axes that are both logarithmic, with the names of the curves beside them. Points that
/// have no logarithm are left out.
void write_curves(std::ostream& out, const std::vector<Curve>& curves, const std::string& x_axis,
                  const std::string& y_axis);

}  // namespace perdix::bench
