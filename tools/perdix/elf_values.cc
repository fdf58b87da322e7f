#include "perdix/elf_values.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "perdix/notation.h"

namespace perdix::tool {
namespace {

using std::chrono::day;
using std::chrono::month;
using std::chrono::sys_days;
using std::chrono::year;
using std::chrono::year_month_day;

[[noreturn]] void refuse(std::string_view text, std::string_view wanted) {
  throw Error(Errc::invalid_argument,
              fmt::format("'{}' is no {}", escape(text.substr(0, 40)), wanted));
}

/// A double that is too small to be told from zero is zero.
template <class Number>
bool is_zero(std::string_view digits) {
  if constexpr (std::is_floating_point_v<Number>)
    return std::abs(std::strtod(std::string(digits).c_str(), nullptr)) < 1;
  return false;
}

template <class Number>
Number parse_number(std::string_view text, std::string_view wanted) {
  Number number{};
  std::string_view digits = text;
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool small = error == std::errc::result_out_of_range && is_zero<Number>(digits);
  if ((error != std::errc() && !small) || end != digits.data() + digits.size())
    refuse(text, wanted);
  return number;
}

constexpr std::string_view kDate = "date of the form YYYY-MM-DD";

/// A part of a date: digits only.
int parse_part(std::string_view date, std::size_t begin, std::size_t length) {
  const std::string_view digits = date.substr(begin, length);
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) refuse(date, kDate);
  return parse_number<int>(digits, kDate);
}

/// Also what text_of() makes of days that the form has no place for.
ElfDate parse_date(std::string_view text) {
  constexpr std::string_view kDay = "day ";
  if (text.starts_with(kDay)) return {parse_number<std::int32_t>(text.substr(kDay.size()), kDate)};
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') refuse(text, kDate);
  const year_month_day date{year(parse_part(text, 0, 4)),
                            month(static_cast<unsigned>(parse_part(text, 5, 2))),
                            day(static_cast<unsigned>(parse_part(text, 8, 2)))};
  if (!date.ok()) refuse(text, "day of the calendar");
  return ElfDate{static_cast<std::int32_t>(sys_days(date).time_since_epoch().count())};
}

/// Days that the form has no place for are shown as a number of days.
std::string text_of(ElfDate date) {
  constexpr std::int32_t kFirst = -719528, kLast = 2932896;  // 0000-01-01, 9999-12-31
  if (date.days < kFirst || date.days > kLast) return fmt::format("day {}", date.days);
  const year_month_day parts{sys_days(std::chrono::days(date.days))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(parts.year()),
                     static_cast<unsigned>(parts.month()), static_cast<unsigned>(parts.day()));
}

ElfType parse_type(std::string_view text) {
  for (const ElfType type :
       {ElfType::int32, ElfType::int64, ElfType::float64, ElfType::date, ElfType::string}) {
    if (text == to_string(type)) return type;
  }
  refuse(text, "type of a column; they are int32, int64, double, date and string");
}

/// Where the next comma is that does not stand in quotes.
std::size_t end_of_item(std::string_view text) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && (i == 0 || quoted)) quoted = !quoted;
    if (text[i] == '"' && !quoted && text.substr(i + 1).starts_with('"')) {
      quoted = true;
      ++i;
    }
    if (text[i] == ',' && !quoted) return i;
  }
  return std::string_view::npos;
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> items;
  for (;;) {
    const std::size_t comma = end_of_item(text);
    items.push_back(text.substr(0, comma));
    if (items.back().empty())
      throw Error(Errc::invalid_argument, "a name is empty in the list of columns");
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

std::string unquote(std::string_view name) {
  if (!name.starts_with('"')) return std::string(name);
  std::string bytes;
  bool sound = name.ends_with('"');
  for (std::size_t i = 1; i + 1 < name.size(); ++i) {
    bytes += name[i];
    if (name[i] == '"') sound &= name[++i] == '"' && i + 1 < name.size();  // a doubled one
  }
  if (!sound || bytes.empty()) {
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' is no name in double quotes", escape(name)));
  }
  return bytes;
}

}  // namespace

std::vector<std::string> parse_names(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view name : split_list(text)) names.push_back(unquote(name));
  return names;
}

std::vector<ElfColumn> parse_columns(std::string_view text) {
  std::vector<ElfColumn> columns;
  for (const std::string_view column : split_list(text)) {
    const std::size_t colon = column.rfind(':');
    if (colon == std::string_view::npos || colon == 0) {
      throw Error(Errc::invalid_argument,
                  fmt::format("'{}' is no column; write NAME:TYPE, for example quantity:int32",
                              escape(column)));
    }
    columns.push_back({unquote(column.substr(0, colon)), parse_type(column.substr(colon + 1))});
  }
  return columns;
}

ElfValue parse_value(std::string_view text, ElfType type) {
  switch (type) {
    case ElfType::int32: return parse_number<std::int32_t>(text, "int32");
    case ElfType::int64: return parse_number<std::int64_t>(text, "int64");
    case ElfType::float64: return parse_number<double>(text, "double");
    case ElfType::date: return parse_date(text);
    default: return std::string(text);
  }
}

std::string to_text(const ElfValue& value) {
  if (const auto* string = std::get_if<std::string>(&value)) return escape(*string);
  if (const auto* date = std::get_if<ElfDate>(&value)) return text_of(*date);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *number);
  return fmt::format("{}", std::get<std::int32_t>(value));
}

}  // namespace perdix::tool
