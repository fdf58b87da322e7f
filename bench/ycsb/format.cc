#include "ycsb/format.h"

#include <array>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace perdix::bench {
namespace {

std::string scaled(double value, double step, std::span<const char* const> units) {
  std::size_t unit = 0;
  while (value >= step && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  return fmt::format("{} {}", format_number(value), units[unit]);
}

}  // namespace

std::string format_number(double value) {
  if (value >= 100 || value == 0) return fmt::format("{:.0f}", value);
  const int digits = 2 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, digits);
}

std::string format_nanoseconds(double nanoseconds) {
  static constexpr std::array<const char*, 4> kUnits = {"ns", "us", "ms", "s"};
  return scaled(nanoseconds, 1000, kUnits);
}

std::string format_count(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string format_bytes(double bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  return scaled(bytes, 1024, kUnits);
}

}  // namespace perdix::bench
