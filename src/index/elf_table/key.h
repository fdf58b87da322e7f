// Values as keys: numbers of 64 bits, or bytes for strings, with the order of the values.
//
//   int32, date   the value with its sign bit flipped, 32 bits
//   int64         the same, 64 bits
//   float64       the bits of a positive value with the sign bit set, those of a negative one
//                 inverted; -0.0 counts as 0.0, and NaN has no key
//   string        its bytes
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/elf_table.h>

namespace perdix::detail::index::elf_table {

/// A key without a copy of its bytes. Which of the two counts depends on the column's type.
struct Key {
  std::uint64_t number = 0;
  std::string_view bytes;
};

/// Keys of values by type. Throw invalid_argument for NaN, too_large for strings above kMaxString.
Key key_of(std::int32_t value);
Key key_of(std::int64_t value);
Key key_of(double value);
Key key_of(ElfDate value);
Key key_of(std::string_view value);

/// The key of a value, which must have the column's type or be an int32 that stands for it. It
/// refers to the value's bytes. Throws invalid_argument.
Key key_of(const ElfColumn& column, const ElfValue& value);

/// The value back.
ElfValue value_of(ElfType type, const Key& key);

/// The greatest number that a key of this type may have.
constexpr std::uint64_t max_number(ElfType type) {
  return type == ElfType::int32 || type == ElfType::date ? ~std::uint32_t{0} : ~std::uint64_t{0};
}

}  // namespace perdix::detail::index::elf_table
