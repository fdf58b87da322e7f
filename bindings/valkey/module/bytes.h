// Numbers and pairs as bytes: in records, in files of the server and between processes. Numbers are
// little-endian, as is the only processor that the library supports.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <perdix/index.h>

namespace perdix::valkey {

template <std::unsigned_integral Number>
void append_number(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// Reads what append_number() wrote. Throws corrupt past the end.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : left_(bytes) {}

  bool at_end() const noexcept { return left_.empty(); }

  template <std::unsigned_integral Number>
  Number number() {
    Number result;
    std::memcpy(&result, bytes(sizeof result).data(), sizeof result);
    return result;
  }

  std::string_view bytes(std::size_t count) {
    if (count > left_.size()) throw Error(Errc::corrupt, "bytes of the perdix module are cut off");
    const std::string_view result = left_.substr(0, count);
    left_.remove_prefix(count);
    return result;
  }

  std::string_view rest() { return bytes(left_.size()); }

 private:
  std::string_view left_;
};

/// A pair, as it is in a chunk of a table's content.
inline void append_pair(std::string& chunk, std::string_view key, std::string_view value) {
  append_number(chunk, static_cast<std::uint32_t>(key.size()));
  append_number(chunk, static_cast<std::uint32_t>(value.size()));
  chunk.append(key).append(value);
}

/// Shows the pairs of a chunk: visit(key, value).
template <class Visit>
void for_each_pair(std::string_view chunk, Visit visit) {
  ByteReader reader(chunk);
  while (!reader.at_end()) {
    const auto key_size = reader.number<std::uint32_t>();
    const auto value_size = reader.number<std::uint32_t>();
    const std::string_view key = reader.bytes(key_size);
    visit(key, reader.bytes(value_size));
  }
}

}  // namespace perdix::valkey
