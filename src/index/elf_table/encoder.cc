#include "index/elf_table/encoder.h"

#include <algorithm>
#include <utility>

#include "index/elf_table/schema.h"

namespace perdix::detail::index::elf_table {
namespace {

/// The keys of a map in ascending order, each with the number that it has there.
template <class Map>
auto sorted(const Map& map) {
  std::vector<std::pair<typename Map::key_type, std::uint32_t>> all(map.begin(), map.end());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

void ColumnEncoder::add(const Key& key) {
  if (type_ == ElfType::string) {
    const auto next = static_cast<std::uint32_t>(strings_.size());
    codes_.push_back(strings_.try_emplace(key.bytes, next).first->second);
  } else {
    const auto next = static_cast<std::uint32_t>(numbers_.size());
    codes_.push_back(numbers_.try_emplace(key.number, next).first->second);
  }
}

void ColumnEncoder::finish() {
  std::vector<std::uint32_t> ranks(numbers_.size() + strings_.size());
  cardinality_ = ranks.size();
  number_words(ranks);
  number_strings(ranks);
  for (std::uint32_t& code : codes_) code = ranks[code];
}

/// Without a dictionary the code is the key itself.
void ColumnEncoder::number_words(std::vector<std::uint32_t>& ranks) {
  const auto words = sorted(numbers_);
  numbers_ = decltype(numbers_)();  // {} would keep the buckets
  const bool ranked = has_dictionary(type_);
  for (std::uint32_t rank = 0; const auto& [key, number] : words) {
    ranks[number] = ranked ? rank : static_cast<std::uint32_t>(key);
    if (ranked) keys_.push_back(key);
    ++rank;
  }
}

void ColumnEncoder::number_strings(std::vector<std::uint32_t>& ranks) {
  const auto words = sorted(strings_);
  strings_ = decltype(strings_)();  // {} would keep the buckets
  for (std::uint32_t rank = 0; const auto& [word, number] : words) {
    ranks[number] = rank++;
    bytes_ += word;
    keys_.push_back(bytes_.size());
  }
}

}  // namespace perdix::detail::index::elf_table
