// Gives the values of one column codes of the same order: collects the different keys, sorts them,
// and numbers them.
//
// Not thread-safe. Keys of strings refer to bytes that must outlive finish().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "index/elf_table/key.h"

namespace perdix::detail::index::elf_table {

class ColumnEncoder {
 public:
  ColumnEncoder(ElfType type, std::uint64_t rows) : type_(type) { codes_.reserve(rows); }

  /// The key of the next row.
  void add(const Key& key);

  /// The next row was erased: its code means nothing.
  void add_erased() { codes_.push_back(kErased); }

  /// No row comes any more.
  void finish();

  // After finish():

  /// One for each row.
  const std::vector<std::uint32_t>& codes() const { return codes_; }

  /// How many different values there are.
  std::uint64_t cardinality() const { return cardinality_; }

  /// The dictionary as layout.h has it: keys of numbers, or ends of strings.
  const std::vector<std::uint64_t>& keys() const { return keys_; }
  const std::string& bytes() const { return bytes_; }

 private:
  static constexpr std::uint32_t kErased = ~std::uint32_t{0};  // no row has this number

  void number_words(std::vector<std::uint32_t>& ranks);
  void number_strings(std::vector<std::uint32_t>& ranks);

  const ElfType type_;
  std::vector<std::uint32_t> codes_;  // before finish(): by the order in which keys came
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  std::unordered_map<std::string_view, std::uint32_t> strings_;
  std::uint64_t cardinality_ = 0;
  std::vector<std::uint64_t> keys_;
  std::string bytes_;
};

}  // namespace perdix::detail::index::elf_table
