// Searches ascending values by the lines of memory that they lie in: each step reads one line and
// looks at all of its values. The first line is guessed.
#pragma once

#include <algorithm>
#include <cstdint>

namespace perdix::detail::index::elf {

inline constexpr std::uint32_t kWordsOfLine = 16;

/// How many of `count` ascending values are below a bound. Without a branch that depends on them.
inline std::uint32_t count_below(const std::uint32_t* values, std::uint32_t count,
                                 std::uint32_t bound) {
  if (count == 0) return 0;
  std::uint32_t first = 0;
  std::uint32_t left = count;
  while (left > 1) {
    const std::uint32_t half = left / 2;
    first += half * static_cast<std::uint32_t>(values[first + half - 1] < bound);
    left -= half;
  }
  return first + static_cast<std::uint32_t>(values[first] < bound);
}

/// The first of `count` ascending values that is not below a bound; `count` if there is none. Of
/// values in any other order, any of them. Calls on_read(first, count) for the words that it reads.
template <class OnRead>
std::uint32_t search(const std::uint32_t* values, std::uint32_t count, std::uint32_t bound,
                     std::uint32_t guess, const OnRead& on_read) {
  if (count <= kWordsOfLine) {
    on_read(0, count);
    return count_below(values, count, bound);
  }
  const auto offset = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(values) /
                                                 sizeof *values % kWordsOfLine);
  std::uint32_t from = 0;  // the result is in [from, to]
  std::uint32_t to = count;
  std::uint32_t at = guess;
  for (bool guessed = true;; guessed = false) {
    const std::uint32_t line = (at + offset) / kWordsOfLine * kWordsOfLine;
    const std::uint32_t begin = std::max(line, from + offset) - offset;
    const std::uint32_t end = std::min(line + kWordsOfLine - offset, to);
    on_read(begin, end - begin);
    const std::uint32_t found = begin + count_below(values + begin, end - begin, bound);
    if (found == begin && begin > from) {
      to = begin;
      at = begin - 1;
    } else if (found == end && end < to) {
      from = end;
      at = end;
    } else {
      return found;
    }
    if (!guessed) at = from + (to - from) / 2;  // so the line beside the guess comes second
  }
}

}  // namespace perdix::detail::index::elf
