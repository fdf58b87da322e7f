#include "support/datum.h"

#include <ostream>

#include <fmt/format.h>

#include <perdix/index.h>

namespace perdix::test {
namespace {

std::string show_bytes(std::string_view bytes) {
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

}  // namespace

bool operator==(DatumView left, DatumView right) { return (left <=> right) == 0; }

std::strong_ordering operator<=>(DatumView left, DatumView right) {
  if (left.kind() != right.kind()) return left.kind() <=> right.kind();
  if (left.kind() == Kind::u64) return left.number() <=> right.number();
  return left.bytes() <=> right.bytes();  // std::string_view compares as unsigned bytes
}

std::string encoded(DatumView datum) {
  if (datum.kind() == Kind::bytes) return std::string(datum.bytes());
  const auto number = encode_u64(datum.number());
  return {number.begin(), number.end()};
}

std::string show(DatumView datum) {
  return datum.kind() == Kind::u64 ? fmt::format("{}", datum.number()) : show_bytes(datum.bytes());
}

void PrintTo(const Datum& datum, std::ostream* out) { *out << show(datum); }

void PrintTo(const DatumView& datum, std::ostream* out) { *out << show(datum); }

}  // namespace perdix::test
