// Gives the values of one column codes that are in the order of the values: collects the different
// keys, sorts them, and numbers them.
//
//   ColumnEncoder encoder(type, rows);
//   encoder.add(key);                // for each row
//   encoder.finish();
//   ... encoder.codes(), encoder.keys(), encoder.bytes() ...
//
// Not thread-safe. Keys of strings refer to bytes that must outlive finish().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "index/common/hash_seed.h"
#include "index/elf_table/key.h"
#include "util/seeded_hash.h"

namespace perdix::detail::index::elf_table {

/// Values are the user's. Without a seed they could be chosen to share a place. Not noexcept: then
/// libstdc++ keeps the hashes, which cost more for strings than their room.
template <class T>
class ValueHash {
 public:
  std::size_t operator()(T value) const noexcept(false) { return hash_(value); }

 private:
  util::SeededHash hash_{draw_hash_seed()};
};

class ColumnEncoder {
 public:
  ColumnEncoder(ElfType type, std::uint64_t rows) : type_(type) { codes_.reserve(rows); }

  /// The key of the next row.
  void add(const Key& key);

  /// Gives all rows their codes. Once, after the last row was added.
  void finish();

  // After finish():

  /// The code of each row, in the order in which rows were added.
  const std::vector<std::uint32_t>& codes() const { return codes_; }

  /// The number of different values.
  std::uint64_t cardinality() const { return cardinality_; }

  /// The dictionary as ColumnLayout has it: the keys, or for strings the ends of their bytes.
  const std::vector<std::uint64_t>& keys() const { return keys_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void number_words(std::vector<std::uint32_t>& ranks);
  void number_strings(std::vector<std::uint32_t>& ranks);

  const ElfType type_;
  std::vector<std::uint32_t> codes_;  // before finish(): keys numbered as they first came
  std::unordered_map<std::uint64_t, std::uint32_t, ValueHash<std::uint64_t>> numbers_;
  std::unordered_map<std::string_view, std::uint32_t, ValueHash<std::string_view>> strings_;
  std::uint64_t cardinality_ = 0;
  std::vector<std::uint64_t> keys_;
  std::string bytes_;
};

}  // namespace perdix::detail::index::elf_table
