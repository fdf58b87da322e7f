// Columns and values of an ElfTable as text.
//
// int32, int64: decimal. double: decimal, with an exponent or not, or inf. date: YYYY-MM-DD, years
// 0000 to 9999. string: its bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <perdix/elf_table.h>

namespace perdix::tool {

/// "a:int32,b:string": names and types. Throws perdix::Error invalid_argument.
std::vector<ElfColumn> parse_columns(std::string_view text);

/// "a,b": names. Throws perdix::Error invalid_argument for an empty one.
std::vector<std::string> parse_names(std::string_view text);

/// A value of a type. Throws perdix::Error invalid_argument.
ElfValue parse_value(std::string_view text, ElfType type);

/// The text of a value, for a line of TSV: strings are escaped (notation.h).
std::string to_text(const ElfValue& value);

}  // namespace perdix::tool
