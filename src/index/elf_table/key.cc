#include "index/elf_table/key.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::index::elf_table {
namespace {

constexpr std::uint32_t kSign32 = std::uint32_t{1} << 31;
constexpr std::uint64_t kSign64 = std::uint64_t{1} << 63;

double double_of(std::uint64_t number) {
  return std::bit_cast<double>((number & kSign64) != 0 ? number ^ kSign64 : ~number);
}

std::int32_t int32_of(std::uint64_t number) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(number) ^ kSign32);
}

ElfType type_of(const ElfValue& value) { return static_cast<ElfType>(value.index() + 1); }

}  // namespace

Key key_of(std::int32_t value) { return {static_cast<std::uint32_t>(value) ^ kSign32, {}}; }

Key key_of(std::int64_t value) { return {static_cast<std::uint64_t>(value) ^ kSign64, {}}; }

Key key_of(double value) {
  if (std::isnan(value)) throw Error(Errc::invalid_argument, "NaN has no place in the order");
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);  // -0.0 + 0.0 is 0.0
  return {(bits & kSign64) != 0 ? ~bits : bits | kSign64, {}};
}

Key key_of(ElfDate value) { return key_of(value.days); }

Key key_of(std::string_view value) {
  if (value.size() > ElfTable::kMaxString) {
    throw Error(Errc::too_large, fmt::format("a string of an ElfTable has at most {} bytes, not {}",
                                             ElfTable::kMaxString, value.size()));
  }
  return {0, value};
}

Key key_of(const ElfColumn& column, const ElfValue& value) {
  if (type_of(value) == column.type)
    return std::visit([](const auto& typed) { return key_of(typed); }, value);
  if (const auto* number = std::get_if<std::int32_t>(&value)) {
    if (column.type == ElfType::int64) return key_of(std::int64_t{*number});
    if (column.type == ElfType::float64) return key_of(static_cast<double>(*number));
  }
  throw Error(Errc::invalid_argument,
              fmt::format("column '{}' is of type {}, and the value of type {}", column.name,
                          to_string(column.type), to_string(type_of(value))));
}

ElfValue value_of(ElfType type, const Key& key) {
  switch (type) {
    case ElfType::int32: return int32_of(key.number);
    case ElfType::int64: return static_cast<std::int64_t>(key.number ^ kSign64);
    case ElfType::float64: return double_of(key.number);
    case ElfType::date: return ElfDate{int32_of(key.number)};
    default: return std::string(key.bytes);
  }
}

}  // namespace perdix::detail::index::elf_table
