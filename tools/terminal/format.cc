#include "terminal/format.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::terminal {
namespace {

std::string scaled(double value, double step, std::span<const char* const> units) {
  std::size_t unit = 0;
  while (value >= step && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  return fmt::format("{} {}", format_number(value), units[unit]);
}

// The factor of a suffix: "" is 1, "k" is `step`, "M" its square and so on, in either case.
std::optional<std::uint64_t> suffix_factor(std::string_view suffix, std::uint64_t step) {
  constexpr std::string_view kSuffixes = "kmgt";
  if (suffix.empty()) return 1;
  const char letter = suffix.front() | 0x20;
  const std::size_t at = kSuffixes.find(letter);
  if (suffix.size() > 1 || at == std::string_view::npos) return std::nullopt;
  std::uint64_t factor = step;
  for (std::size_t i = 0; i < at; ++i) factor *= step;
  return factor;
}

std::optional<std::uint64_t> parse_scaled(std::string_view text, std::uint64_t step) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc()) return std::nullopt;
  const auto factor = suffix_factor({rest, static_cast<std::size_t>(end - rest)}, step);
  std::uint64_t product = 0;
  if (!factor || __builtin_mul_overflow(number, *factor, &product)) return std::nullopt;
  return product;
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
  const std::string digits = std::to_string(count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string format_bytes(double bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  return scaled(bytes, 1024, kUnits);
}

std::uint64_t parse_count(const std::string& text) {
  if (const auto count = parse_scaled(text, 1000)) return *count;
  throw Error(Errc::invalid_argument,
              fmt::format("'{}' is not a count; write for example 500k, 10M or 1000000", text));
}

std::uint64_t parse_size(const std::string& text) {
  std::string_view digits = text;
  if (digits.ends_with("iB")) digits.remove_suffix(2);
  if (const auto size = parse_scaled(digits, 1024)) return *size;
  throw Error(Errc::invalid_argument,
              fmt::format("'{}' is not a size; write for example 64M, 1GiB or 1048576", text));
}

}  // namespace perdix::terminal
