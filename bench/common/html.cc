#include "common/html.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <ostream>

#include <fmt/format.h>
#include <fmt/ostream.h>

namespace perdix::bench {
namespace {

// Colours that people with colour blindness can tell apart (Okabe and Ito).
constexpr std::array<const char*, 7> kColours = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                                 "#56b4e9", "#d55e00", "#999999"};

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{0}</title><style>
body {{ font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; color: #222; background: #fff }}
h1 {{ font-size: 1.5rem }} h2 {{ font-size: 1.15rem; margin-top: 2.2rem }}
svg {{ width: 100%; height: auto }} svg text {{ font: 12px system-ui, sans-serif; fill: #222 }}
pre {{ background: #f5f5f5; padding: 1rem; overflow-x: auto; font-size: 12.5px }}
.problem {{ color: #b00020; font-weight: 600 }}
</style></head><body>
<h1>{0}</h1>
)";

constexpr double kLeft = 90;
constexpr double kWidth = 600;
constexpr double kTop = 20;
constexpr double kHeight = 300;

// One axis of curves: whole decades that hold all values, mapped to a length.
struct Axis {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, std::floor(std::log10(value)));
    high = std::max({high, std::ceil(std::log10(value)), low + 1});
  }
  double at(double value) const { return (std::log10(value) - low) / (high - low); }
  bool empty() const { return high < low; }
};

double x_of(const Axis& axis, double value) { return kLeft + axis.at(value) * kWidth; }
double y_of(const Axis& axis, double value) { return kTop + (1 - axis.at(value)) * kHeight; }

bool has_logarithm(const std::pair<double, double>& point) {
  return point.first > 0 && point.second > 0;
}

void write_grid(std::ostream& out, const Axis& x, const Axis& y) {
  constexpr const char* kLine =
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>";
  for (double decade = x.low; decade <= x.high; ++decade) {
    const double at = x_of(x, std::pow(10, decade));
    fmt::print(out, kLine, at, kTop, at, kTop + kHeight);
    fmt::print(out, "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g}</text>\n", at,
               kTop + kHeight + 16, std::pow(10, decade));
  }
  for (double decade = y.low; decade <= y.high; ++decade) {
    const double at = y_of(y, std::pow(10, decade));
    fmt::print(out, kLine, kLeft, at, kLeft + kWidth, at);
    fmt::print(out, "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n", kLeft - 8,
               at + 4, std::pow(10, decade));
  }
}

void write_curve(std::ostream& out, const Curve& curve, const Axis& x, const Axis& y) {
  std::string path;
  for (const auto& point : curve.points) {
    if (has_logarithm(point))
      path += fmt::format("{:.1f},{:.1f} ", x_of(x, point.first), y_of(y, point.second));
  }
  fmt::print(out, "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n",
             path, curve.colour, curve.dashed ? " stroke-dasharray=\"6 4\"" : "");
}

void write_legend(std::ostream& out, const std::vector<Curve>& curves) {
  double y = kTop + 10;
  for (const Curve& curve : curves) {
    fmt::print(out,
               "<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\" stroke=\"{3}\" "
               "stroke-width=\"2\"{4}/><text x=\"{5}\" y=\"{6}\">{7}</text>\n",
               kLeft + kWidth + 16, y, kLeft + kWidth + 44, curve.colour,
               curve.dashed ? " stroke-dasharray=\"6 4\"" : "", kLeft + kWidth + 50, y + 4,
               escape(curve.label));
    y += 18;
  }
}

}  // namespace

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

const char* html_colour(std::size_t number) { return kColours[number % kColours.size()]; }

void begin_html(std::ostream& out, const std::string& title) {
  fmt::print(out, kHead, escape(title));
}

void end_html(std::ostream& out, const std::string& tables) {
  fmt::print(out, "<h2>All figures</h2>\n<pre>{}</pre>\n</body></html>\n", escape(tables));
}

void write_problem(std::ostream& out, const std::string& problem) {
  fmt::print(out, "<p class=\"problem\">{}</p>\n", escape(problem));
}

void write_title(std::ostream& out, const std::string& title) {
  fmt::print(out, "<h2>{}</h2>\n", escape(title));
}

void write_bars(std::ostream& out, const std::vector<Bar>& bars) {
  constexpr int kBarHeight = 18;
  constexpr int kGroupGap = 26;
  constexpr int kBarLeft = 110;
  constexpr int kBarWidth = 700;
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
    const double width = longest > 0 ? bar.value / longest * kBarWidth : 0;
    fmt::print(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kBarLeft - 8, y + 13,
               escape(bar.label));
    fmt::print(out, "<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>",
               kBarLeft, y + 2, width, kBarHeight - 4, bar.colour);
    fmt::print(out, "<text x=\"{:.1f}\" y=\"{}\">{}</text>\n", kBarLeft + width + 6, y + 13,
               escape(bar.text));
    y += kBarHeight;
  }
  out << "</svg>\n";
}

void write_curves(std::ostream& out, const std::vector<Curve>& curves, const std::string& x_axis,
                  const std::string& y_axis) {
  Axis x, y;
  for (const Curve& curve : curves) {
    for (const auto& point : curve.points) {
      if (!has_logarithm(point)) continue;
      x.add(point.first);
      y.add(point.second);
    }
  }
  if (x.empty()) return;
  fmt::print(out, "<svg viewBox=\"0 0 920 {}\" role=\"img\">\n", kTop + kHeight + 44);
  write_grid(out, x, y);
  fmt::print(out, "<text x=\"{}\" y=\"{}\">{}</text>\n", 0, 12, escape(y_axis));
  fmt::print(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", kLeft + kWidth / 2,
             kTop + kHeight + 36, escape(x_axis));
  for (const Curve& curve : curves) write_curve(out, curve, x, y);
  write_legend(out, curves);
  out << "</svg>\n";
}

}  // namespace perdix::bench
