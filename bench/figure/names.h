// The names of a figure file: what is measured has a value for each of them, a number or a word.
// Counts and settings may be written as sums and products of names, titles as texts with names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perdix::bench {

/// A number or a word.
class Value {
 public:
  Value(double number) : number_(number) {}

  /// "60k", "10M", "256KiB" and "0.99" are numbers; everything else is a word.
  explicit Value(const std::string& text);

  bool is_number() const { return number_.has_value(); }
  double number() const { return number_.value(); }

  /// "60000", "0.99", "eADR".
  std::string text() const;

  friend bool operator==(const Value&, const Value&) = default;

 private:
  std::optional<double> number_;
  std::string word_;
};

using Names = std::map<std::string, Value, std::less<>>;

/// Throws perdix::Error invalid_argument, which lists the names there are.
const Value& value_of(std::string_view name, const Names& names);

/// Computes "start + records", "records * cached / 100": numbers and names that stand for numbers,
/// with + - * / in the usual order, without brackets. Throws perdix::Error invalid_argument.
double evaluate(std::string_view expression, const Names& names);

/// Returns the value of a name, of a number, or of an expression; any other text is a word.
Value value_or_word(const std::string& text, const Names& names);

/// Replaces each "{name}" and "{expression}" in a text. "{pairs:count}" is "1,000,000",
/// "{log:bytes}" is "256 KiB", "{share:percent}" is "25 %", and "{threads}" is "2 threads". Words
/// have no format. Throws perdix::Error invalid_argument.
std::string expand(std::string_view text, const Names& names);

}  // namespace perdix::bench
