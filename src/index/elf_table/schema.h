// The columns of a table, as bytes in PM and back, and their form in the public interface.
//
// Bytes, for each column: its type, the length of its name, its name.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/elf_table.h>

namespace perdix::detail::index::elf_table {

using Schema = std::vector<ElfColumn>;

/// Throws invalid_argument or too_large unless a table may have these columns.
void require_schema(const Schema& schema);

std::string encode_schema(const Schema& schema);

/// None if the bytes are no schema.
std::optional<Schema> decode_schema(std::string_view bytes);

/// The number of a column. Throws invalid_argument, with the names that there are.
unsigned column_number(const Schema& schema, std::string_view name);

/// Whether values of that type have a dictionary.
constexpr bool has_dictionary(ElfType type) {
  return type != ElfType::int32 && type != ElfType::date;
}

/// "quantity int32, shipmode string"
std::string describe(const Schema& schema);

}  // namespace perdix::detail::index::elf_table
