// Keys as bytes. Not beside perdix::Index, which would link all engines into each program that uses
// one of them.
#include "index/common/bytes.h"

#include <array>
#include <optional>

#include <fmt/format.h>

#include <perdix/error.h>
#include <perdix/key_range.h>

#include "pool/as_errors.h"

namespace perdix {
namespace {

void require_u64(std::string_view bytes) {
  if (bytes.size() == sizeof(std::uint64_t)) return;
  throw Error(
      Errc::invalid_argument,
      fmt::format("an integer key or value must be 8 big-endian bytes, not {}", bytes.size()));
}

}  // namespace

std::optional<std::string> end_of_prefix(std::string_view bytes) {
  return detail::pool::as_errors([&]() -> std::optional<std::string> {
    std::string end(bytes);
    while (!end.empty() && end.back() == '\xff') end.pop_back();
    if (end.empty()) return std::nullopt;
    end.back() = static_cast<char>(end.back() + 1);
    return end;
  });
}

std::array<char, 8> encode_u64(std::uint64_t value) noexcept {
  std::array<char, 8> bytes;
  for (auto it = bytes.rbegin(); it != bytes.rend(); ++it, value >>= 8)
    *it = static_cast<char>(value);
  return bytes;
}

std::uint64_t decode_u64(std::string_view bytes) {
  detail::pool::as_errors([&] { require_u64(bytes); });
  std::uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

}  // namespace perdix
