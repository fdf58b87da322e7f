// An inserted row as bytes: the keys of its columns, one behind the other. A number takes 8 bytes.
// A string takes 4 bytes for the number of its bytes, then its bytes. Little-endian, as all of a
// pool. Never empty, since a table has a column: an empty value marks an erased row (layout.h, T5).
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "index/elf_table/key.h"
#include "index/elf_table/schema.h"

namespace perdix::detail::index::elf_table {

/// Adds the key of the next column to a record.
inline void append_key(std::string& record, ElfType type, const Key& key) {
  if (type != ElfType::string) {
    record.append(reinterpret_cast<const char*>(&key.number), sizeof key.number);
    return;
  }
  const auto size = static_cast<std::uint32_t>(key.bytes.size());
  record.append(reinterpret_cast<const char*>(&size), sizeof size);
  record.append(key.bytes);
}

/// Reads the keys of a record one after the other. Keys of strings refer to the record's bytes.
class RecordReader {
 public:
  explicit RecordReader(std::string_view record) : rest_(record) {}

  /// Reads the next key. Returns false if the record ends before it does.
  bool next(ElfType type, Key& key) {
    if (type != ElfType::string) return take(&key.number, sizeof key.number);
    std::uint32_t size = 0;
    if (!take(&size, sizeof size) || size > rest_.size()) return false;
    key.bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  bool at_end() const { return rest_.empty(); }

 private:
  bool take(void* to, std::size_t size) {
    if (size > rest_.size()) return false;
    std::memcpy(to, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
};

/// Reads all keys of a record to `keys`, which has one for each column. Returns false if the record
/// is not a row of that schema; then some keys may have been read.
inline bool read_record(const Schema& schema, std::string_view record, std::span<Key> keys) {
  RecordReader reader(record);
  for (std::size_t i = 0; i < schema.size(); ++i) {
    if (!reader.next(schema[i].type, keys[i])) return false;
  }
  return reader.at_end();
}

}  // namespace perdix::detail::index::elf_table
