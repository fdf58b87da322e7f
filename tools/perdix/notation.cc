#include "perdix/notation.h"

#include <array>
#include <charconv>

#include <fmt/format.h>

#include <perdix/error.h>
#include <perdix/index.h>

namespace perdix::tool {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

unsigned char byte_at(std::string_view bytes, std::size_t i) {
  return static_cast<unsigned char>(bytes[i]);
}

bool is_continuation(std::string_view bytes, std::size_t i) {
  return i < bytes.size() && (byte_at(bytes, i) & 0xc0) == 0x80;
}

// Length of the well-formed UTF-8 sequence of several bytes at `i` (Unicode 15, table 3-7); 0 if
// there is none.
std::size_t utf8_length(std::string_view bytes, std::size_t i) {
  const unsigned char lead = byte_at(bytes, i);
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if (!is_continuation(bytes, i + k)) return 0;
  }
  const unsigned char second = byte_at(bytes, i + 1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool surrogate = lead == 0xed && second > 0x9f;
  const bool too_large = lead == 0xf4 && second > 0x8f;
  return overlong || surrogate || too_large ? 0 : length;
}

// Whether a terminal would act on the sequence of that length at `i` in place of showing it: C1
// controls, separators of lines, and controls of bidirectional text (Unicode 15, 23.1 and 23.2).
bool is_control(std::string_view bytes, std::size_t i, std::size_t length) {
  const unsigned second = byte_at(bytes, i + 1) & 0x3fU;
  if (length == 2) {
    const unsigned code = (byte_at(bytes, i) & 0x1fU) << 6 | second;
    return code < 0xa0 || code == 0x61c;
  }
  if (length != 3) return false;
  const unsigned code =
      (byte_at(bytes, i) & 0x0fU) << 12 | second << 6 | (byte_at(bytes, i + 2) & 0x3fU);
  return code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

void append_hex(std::string& out, unsigned char byte) {
  out += kHexDigits[byte >> 4];
  out += kHexDigits[byte & 15];
}

// The letter after the backslash, for bytes that have one.
char escape_letter(char c) {
  switch (c) {
    case '\\': return '\\';
    case '\t': return 't';
    case '\n': return 'n';
    case '\r': return 'r';
    default: return '\0';
  }
}

bool stands_for_itself(char c) { return c >= ' ' && c < '\x7f' && c != '\\'; }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The byte that two digits at `i` stand for; -1 if there aren't two.
int hex_byte(std::string_view text, std::size_t i) {
  if (i + 2 > text.size()) return -1;
  const int high = hex_value(text[i]);
  const int low = hex_value(text[i + 1]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

char unescaped_letter(char letter) {
  switch (letter) {
    case '\\': return '\\';
    case 't': return '\t';
    case 'n': return '\n';
    case 'r': return '\r';
    default: return '\0';
  }
}

[[noreturn]] void refuse_escape(std::string_view text, std::size_t at) {
  throw Error(Errc::invalid_argument, fmt::format("'\\{}' is no escape sequence (they are \\\\ \\t "
                                                  "\\n \\r \\xHH); if backslashes stand for "
                                                  "themselves, use --plain",
                                                  escape(text.substr(at + 1, 3))));
}

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int byte = hex_byte(text, i);
    if (byte < 0) {
      throw Error(Errc::invalid_argument,
                  fmt::format("'{}' is not hexadecimal; give two digits per byte",
                              escape(text.substr(0, 40))));
    }
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::string number_to_bytes(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || rest != end) {
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' is not a number from 0 to 18446744073709551615",
                            escape(text.substr(0, 40))));
  }
  const auto bytes = encode_u64(number);
  return {bytes.data(), bytes.size()};
}

void append_escaped(std::string& out, char c) {
  if (stands_for_itself(c)) {
    out += c;
  } else if (const char letter = escape_letter(c)) {
    out += '\\';
    out += letter;
  } else {
    out += "\\x";
    append_hex(out, static_cast<unsigned char>(c));
  }
}

}  // namespace

std::string escape(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t length = byte_at(bytes, i) >= 0x80 ? utf8_length(bytes, i) : 0;
    if (length > 0 && !is_control(bytes, i, length)) {
      out += bytes.substr(i, length);
      i += length;
    } else {
      append_escaped(out, bytes[i]);
      ++i;
    }
  }
  return out;
}

std::string printable(std::string_view message) {
  std::string out;
  for (;;) {
    const std::size_t backslash = message.find('\\');
    out += escape(message.substr(0, backslash));
    if (backslash == std::string_view::npos) return out;
    out += '\\';
    message.remove_prefix(backslash + 1);
  }
}

std::string unescape(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
      continue;
    }
    const char letter = i + 1 < text.size() ? text[i + 1] : '\0';
    if (const char byte = unescaped_letter(letter)) {
      bytes += byte;
      i += 1;
    } else if (const int value = letter == 'x' ? hex_byte(text, i + 2) : -1; value >= 0) {
      bytes += static_cast<char>(value);
      i += 3;
    } else {
      refuse_escape(text, i);
    }
  }
  return bytes;
}

std::string to_bytes(std::string_view text, Kind kind, Notation notation) {
  if (kind == Kind::u64) return number_to_bytes(text);
  switch (notation) {
    case Notation::escaped: return unescape(text);
    case Notation::hex: return from_hex(text);
    case Notation::plain: break;
  }
  return std::string(text);
}

std::string to_text(std::string_view bytes, Kind kind, Notation notation) {
  if (kind == Kind::u64) return std::to_string(decode_u64(bytes));
  if (notation == Notation::escaped) return escape(bytes);
  if (notation == Notation::plain) return std::string(bytes);
  std::string digits;
  for (const char c : bytes) append_hex(digits, static_cast<unsigned char>(c));
  return digits;
}

}  // namespace perdix::tool
