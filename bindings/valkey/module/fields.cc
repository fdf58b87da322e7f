#include "fields.h"

#include <algorithm>
#include <charconv>

namespace perdix::valkey {
namespace {

/// Matches one character against the class that starts behind '['; moves the pattern behind ']'.
bool matches_class(std::string_view& pattern, char c) {
  const bool inverted = pattern.starts_with('^');
  if (inverted) pattern.remove_prefix(1);
  bool found = false;
  while (!pattern.empty() && pattern.front() != ']') {
    if (pattern.front() == '\\' && pattern.size() > 1) pattern.remove_prefix(1);
    const char low = pattern.front();
    if (pattern.size() > 2 && pattern[1] == '-' && pattern[2] != ']') {
      const char high = pattern[2];
      found = found || (std::min(low, high) <= c && c <= std::max(low, high));
      pattern.remove_prefix(3);
    } else {
      found = found || low == c;
      pattern.remove_prefix(1);
    }
  }
  if (!pattern.empty()) pattern.remove_prefix(1);
  return found != inverted;
}

/// Matches one character against the start of a pattern that is no '*', and moves the pattern on.
bool matches_one(std::string_view& pattern, char c) {
  const char wanted = pattern.front();
  pattern.remove_prefix(1);
  if (wanted == '?') return true;
  if (wanted == '[') return matches_class(pattern, c);
  if (wanted == '\\' && !pattern.empty()) {
    const char literal = pattern.front();
    pattern.remove_prefix(1);
    return literal == c;
  }
  return wanted == c;
}

}  // namespace

Encoded::Encoded(Kind kind, std::string_view text) : is_number_(kind == Kind::u64), text_(text) {
  if (!is_number_) return;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(Errc::invalid_argument, "the table has numbers: '" +
                                            std::string(text.substr(0, 64)) +
                                            "' is none from 0 to 18446744073709551615");
  number_ = encode_u64(number);
}

Decoded::Decoded(Kind kind, std::string_view bytes) : bytes_(bytes) {
  if (kind != Kind::u64) return;
  const auto result =
      std::to_chars(digits_.data(), digits_.data() + digits_.size(), decode_u64(bytes));
  size_ = static_cast<std::size_t>(result.ptr - digits_.data());
}

bool matches(std::string_view pattern, std::string_view text) {
  // After a '*' the rest is tried at each place; only the last '*' needs to be tried again.
  std::string_view retry_pattern;
  std::string_view retry_text;
  bool can_retry = false;
  while (!text.empty()) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      retry_pattern = pattern;
      retry_text = text;
      can_retry = true;
      continue;
    }
    if (!pattern.empty() && matches_one(pattern, text.front())) {
      text.remove_prefix(1);
      continue;
    }
    if (!can_retry) return false;
    retry_text.remove_prefix(1);
    text = retry_text;
    pattern = retry_pattern;
  }
  while (pattern.starts_with('*')) pattern.remove_prefix(1);
  return pattern.empty();
}

}  // namespace perdix::valkey
