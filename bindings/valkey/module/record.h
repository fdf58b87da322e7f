// What the catalogue keeps of a key: what kind of value, when it expires, and the value or where it
// is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bytes.h"

namespace perdix::valkey {

struct Record {
  enum class Type : std::uint8_t {
    table = 1,  ///< payload: the table's number
    text = 2,   ///< a native string; payload: its bytes
    dump = 3,   ///< any other native value; payload: what DUMP says
  };

  static constexpr long long kNever = -1;

  Type type = Type::text;
  long long expires = kNever;  ///< in milliseconds of the Unix time
  std::string_view payload;
};

inline std::string encode(const Record& record) {
  std::string bytes;
  bytes.reserve(1 + sizeof(std::uint64_t) + record.payload.size());
  append_number(bytes, static_cast<std::uint8_t>(record.type));
  append_number(bytes, static_cast<std::uint64_t>(record.expires));
  bytes.append(record.payload);
  return bytes;
}

/// The payload lies in `bytes`. Throws corrupt.
inline Record decode_record(std::string_view bytes) {
  ByteReader reader(bytes);
  Record record;
  record.type = static_cast<Record::Type>(reader.number<std::uint8_t>());
  record.expires = static_cast<long long>(reader.number<std::uint64_t>());
  record.payload = reader.rest();
  return record;
}

inline std::string table_record(std::uint64_t id, long long expires) {
  std::string number;
  append_number(number, id);
  return encode({Record::Type::table, expires, number});
}

/// The table's number in a record of that type.
inline std::uint64_t table_in(const Record& record) {
  return ByteReader(record.payload).number<std::uint64_t>();
}

}  // namespace perdix::valkey
