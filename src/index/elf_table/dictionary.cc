#include "index/elf_table/dictionary.h"

#include <algorithm>

#include <fmt/format.h>

#include "index/elf_table/blocks.h"
#include "pm/access.h"
#include "pool/checked.h"

namespace perdix::detail::index::elf_table {
namespace {

constexpr std::uint64_t kCodes = std::uint64_t{1} << 32;

/// The least number below `size` for which at_least() holds; `size` if there is none. If it holds
/// for a number, it holds for all greater ones.
template <class AtLeast>
std::uint64_t first_of(std::uint64_t size, const AtLeast& at_least) {
  std::uint64_t begin = 0, end = size;
  while (begin < end) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    if (at_least(middle)) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

/// Adds the codes from `begin` to below `end`. None of them lies before an interval that is there.
void add_codes(std::vector<ElfInterval>& intervals, std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  const auto lower = static_cast<std::uint32_t>(begin);
  const auto upper = static_cast<std::uint32_t>(end - 1);
  if (!intervals.empty() && std::uint64_t{intervals.back().upper} + 1 >= begin) {
    intervals.back().upper = std::max(intervals.back().upper, upper);
  } else {
    intervals.push_back({lower, upper});
  }
}

}  // namespace

Dictionary::Dictionary(const pool::PoolCore& pool, const ElfColumn& column,
                       const ColumnLayout& layout)
    : pool_(pool), type_(column.type), size_(has_dictionary(type_) ? layout.words : kCodes) {
  if (!has_dictionary(type_) || size_ == 0) return;
  if (size_ > kCodes) pool::throw_corrupt(pool, "a dictionary", layout.keys);
  keys_ = checked_array<std::uint64_t>(pool, layout.keys, size_, "a dictionary");
  if (type_ != ElfType::string) return;
  bytes_end_ = pm::load(keys_[size_ - 1]);
  if (bytes_end_ > 0)
    bytes_ = checked_array<char>(pool, layout.bytes, bytes_end_, "the bytes of a dictionary");
}

Key Dictionary::key(std::uint32_t code) const {
  if (code >= size_) pool::throw_corrupt(pool_, fmt::format("the code {}", code), 0);
  if (type_ == ElfType::string) return {0, word(code)};
  return {keys_ == nullptr ? code : pm::load(keys_[code]), {}};
}

std::string_view Dictionary::word(std::uint64_t code) const {
  const std::uint64_t begin = code == 0 ? 0 : pm::load(keys_[code - 1]);
  const std::uint64_t end = pm::load(keys_[code]);
  if (begin > end || end > bytes_end_)
    pool::throw_corrupt(pool_, "a word of a dictionary", pool_.offset(&keys_[code]));
  pm::on_read(bytes_ + begin, end - begin);
  return {bytes_ + begin, end - begin};
}

std::uint64_t Dictionary::first_at_least(std::uint64_t number) const {
  if (keys_ == nullptr) return std::min(number, size_);
  return first_of(size_, [&](std::uint64_t code) { return pm::load(keys_[code]) >= number; });
}

std::uint64_t Dictionary::first_at_least(std::string_view bytes) const {
  return first_of(size_, [&](std::uint64_t code) { return word(code) >= bytes; });
}

std::vector<ElfInterval> Dictionary::admitted(const Condition& condition) const {
  std::vector<ElfInterval> intervals;
  for (const auto& [lower, upper] : condition.numbers) {
    const bool to_end = upper == max_number(type_);
    add_codes(intervals, first_at_least(lower), to_end ? size_ : first_at_least(upper + 1));
  }
  for (const auto& [from, to] : condition.strings)
    add_codes(intervals, first_at_least(from), to ? first_at_least(*to) : size_);
  return intervals;
}

}  // namespace perdix::detail::index::elf_table
