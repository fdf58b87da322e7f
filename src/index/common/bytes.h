// Keys and values as bytes, the way that perdix::Index takes and gives them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/index.h>

namespace perdix::detail::index {

/// Bytes to a typed view and back: strings are bytes already, integers are eight big-endian bytes.
template <Storable T>
struct Bytes;

template <>
struct Bytes<std::string> {
  static std::string_view decode(std::string_view bytes) { return bytes; }
  static std::string_view encode(std::string_view value) { return value; }
  static std::string own(std::string value) { return value; }
};

template <>
struct Bytes<std::uint64_t> {
  static std::uint64_t decode(std::string_view bytes) { return decode_u64(bytes); }
  static std::string own(std::uint64_t value) {
    const auto bytes = encode_u64(value);
    return {bytes.data(), bytes.size()};
  }
  static std::string encode(std::uint64_t value) { return own(value); }
};

}  // namespace perdix::detail::index
