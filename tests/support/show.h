// Keys and values in messages: short, printable, and long enough to tell them apart.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace perdix::test {

inline std::string show(std::uint64_t number) { return fmt::format("{}", number); }

/// The first bytes, those that are not printable in hexadecimal, and the length if some are left.
inline std::string show(std::string_view bytes) {
  constexpr std::size_t kShown = 24;
  std::string text = "\"";
  for (const char c : bytes.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte >= 0x20 && byte < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  text += '"';
  if (bytes.size() > kShown) text += fmt::format("... ({} bytes)", bytes.size());
  return text;
}

template <class T>
std::string show(const std::optional<T>& value) {
  return value ? show(*value) : "nothing";
}

}  // namespace perdix::test
