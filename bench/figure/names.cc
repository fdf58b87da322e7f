#include "figure/names.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <perdix/error.h>

#include "common/figure.h"
#include "common/require.h"
#include "terminal/format.h"

namespace perdix::bench {
namespace {

std::optional<double> parse_decimal(std::string_view text) {
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> parse_number(const std::string& text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  if (const auto decimal = parse_decimal(text)) return decimal;
  try {
    return static_cast<double>(text.ends_with("iB") ? terminal::parse_size(text)
                                                    : terminal::parse_count(text));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

double evaluate_operand(std::string_view text, const Names& names) {
  const std::string operand(trimmed(text));
  if (const auto number = parse_number(operand)) return *number;
  const Value& value = value_of(operand, names);
  if (!value.is_number()) refuse(fmt::format("'{}' is '{}', no number", operand, value.text()));
  return value.number();
}

/// Splits at the last of the two operators, so that operators of one rank are applied from the left
/// to the right.
template <class Operand>
double evaluate_rank(std::string_view text, const char* operators,
                     double (*apply)(char, double, double), Operand operand) {
  const std::size_t at = text.find_last_of(operators);
  if (at == std::string_view::npos) return operand(text);
  return apply(text[at], evaluate_rank(text.substr(0, at), operators, apply, operand),
               operand(text.substr(at + 1)));
}

double evaluate_product(std::string_view text, const Names& names) {
  const auto apply = [](char op, double a, double b) { return op == '*' ? a * b : a / b; };
  return evaluate_rank(text, "*/", apply,
                       [&](std::string_view operand) { return evaluate_operand(operand, names); });
}

std::string formatted(std::string_view placeholder, const Names& names) {
  const std::size_t colon = placeholder.find(':');
  const std::string_view expression = placeholder.substr(0, colon);
  const auto found = names.find(expression);
  const Value value = found != names.end() ? found->second : Value(evaluate(expression, names));
  if (expression == "threads" && value.is_number())
    return threads_text(static_cast<std::uint64_t>(value.number()));
  if (colon == std::string_view::npos || !value.is_number()) return value.text();
  const std::string_view format = placeholder.substr(colon + 1);
  if (format == "count")
    return terminal::format_count(static_cast<std::uint64_t>(std::llround(value.number())));
  if (format == "bytes") return terminal::format_bytes(value.number());
  if (format == "percent") return value.text() + " %";
  refuse(fmt::format("no format '{}'; choose from: count, bytes, percent", format));
}

}  // namespace

Value::Value(const std::string& text) : number_(parse_number(text)) {
  if (!number_) word_ = text;
}

std::string Value::text() const { return number_ ? fmt::format("{}", *number_) : word_; }

const Value& value_of(std::string_view name, const Names& names) {
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  std::vector<std::string_view> known;
  for (const auto& [other, value] : names) known.push_back(other);
  refuse(fmt::format("nothing is named '{}'; there are: {}", name, fmt::join(known, ", ")));
}

double evaluate(std::string_view expression, const Names& names) {
  const auto apply = [](char op, double a, double b) { return op == '+' ? a + b : a - b; };
  return evaluate_rank(expression, "+-", apply,
                       [&](std::string_view term) { return evaluate_product(term, names); });
}

Value value_or_word(const std::string& text, const Names& names) {
  if (const auto found = names.find(text); found != names.end()) return found->second;
  try {
    return evaluate(text, names);
  } catch (const Error&) {
    return Value(text);
  }
}

std::string expand(std::string_view text, const Names& names) {
  std::string expanded;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    expanded += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) refuse(fmt::format("a brace is not closed in '{}'", text));
    expanded += formatted(text.substr(open + 1, close - open - 1), names);
    text.remove_prefix(close + 1);
  }
  return expanded;
}

}  // namespace perdix::bench
