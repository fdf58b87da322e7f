#include "index/common/engine_options.h"

#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <perdix/error.h>

namespace perdix::detail::index {
namespace {

constexpr std::array<std::string_view, 4> kTechniques = {"none", "b", "bo", "boc"};
constexpr std::string_view kUnlimitedText = "unlimited";
constexpr std::string_view kUnits = "KMGT";

/// The whole text as a number.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<bool> OptionText<bool>::read(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

std::string OptionText<bool>::write(bool value) { return value ? "true" : "false"; }

std::optional<std::uint64_t> OptionText<std::uint64_t>::read(std::string_view text) {
  if (text == kUnlimitedText) return kUnlimited;
  const std::size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  if (unit == kUnits.npos) return number_in<std::uint64_t>(text);
  const auto number = number_in<std::uint64_t>(text.substr(0, text.size() - 1));
  const unsigned shift = 10 * (static_cast<unsigned>(unit) + 1);
  if (!number || *number > kUnlimited >> shift) return std::nullopt;
  return *number << shift;
}

std::string OptionText<std::uint64_t>::write(std::uint64_t value) {
  return value == kUnlimited ? std::string(kUnlimitedText) : std::to_string(value);
}

std::optional<std::uint32_t> OptionText<std::uint32_t>::read(std::string_view text) {
  const auto number = OptionText<std::uint64_t>::read(text);
  if (!number || *number > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

std::optional<double> OptionText<double>::read(std::string_view text) {
  const auto number = number_in<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::string OptionText<double>::write(double value) { return fmt::format("{}", value); }

std::optional<Technique> OptionText<Technique>::read(std::string_view text) {
  const auto found = std::ranges::find(kTechniques, text);
  if (found == kTechniques.end()) return std::nullopt;
  return static_cast<Technique>(found - kTechniques.begin());
}

std::string OptionText<Technique>::write(Technique value) {
  const auto number = static_cast<std::size_t>(value);
  return number < kTechniques.size() ? std::string(kTechniques.at(number)) : std::to_string(number);
}

void throw_out_of_range(std::string_view engine, std::string_view option, std::string_view value,
                        std::string_view range) {
  throw Error(Errc::invalid_argument,
              fmt::format("{}: {} is {}; it must be {}", engine, option, value, range));
}

void throw_unreadable(std::string_view engine, std::string_view option, std::string_view text,
                      std::string_view form, std::string_view range) {
  throw Error(Errc::invalid_argument,
              fmt::format("{}: {} is '{}'; it must be {}{}{}", engine, option, text, form,
                          range.empty() ? "" : "; ", range));
}

void throw_unknown_option(std::string_view engine, std::string_view option,
                          const std::vector<std::string_view>& names) {
  throw Error(Errc::invalid_argument, fmt::format("the engine {} has no option '{}'; it has: {}",
                                                  engine, option, fmt::join(names, ", ")));
}

}  // namespace perdix::detail::index
