// Keys and values as text: how the tool writes and reads any bytes on a line.
//
// Escaped text (the default of dump and load): a backslash, TAB, newline and carriage return are
// \\ \t \n \r; other control characters (ASCII's and U+0080 to U+009F), separators of lines and
// characters that change the direction of text, and bytes that are not part of valid UTF-8, are
// \xHH for each byte, with two hexadecimal digits. Everything else stands for itself. So no key and
// no value can steer a terminal. `unescape(escape(bytes)) == bytes` for all bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/types.h>

namespace perdix::tool {

enum class Notation : std::uint8_t {
  escaped,  ///< as above
  plain,    ///< the bytes themselves
  hex,      ///< two hexadecimal digits per byte
};

std::string escape(std::string_view bytes);

/// A message that may quote names from a pool: as escape(), but a backslash stands for itself.
std::string printable(std::string_view message);

/// Throws perdix::Error invalid_argument if a backslash begins no escape sequence.
std::string unescape(std::string_view text);

/// Text to what an Index takes. Numbers are decimal in every notation. Throws perdix::Error
/// invalid_argument for what is no number from 0 to 2^64 - 1, or is not in the notation.
std::string to_bytes(std::string_view text, Kind kind, Notation notation);

/// Results of an Index, as text.
std::string to_text(std::string_view bytes, Kind kind, Notation notation);

}  // namespace perdix::tool
