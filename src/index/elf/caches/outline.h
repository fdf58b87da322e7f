// The outline of a list: which values it has, as bits, and where it lies. So a search reads in PM
// only the pointer of its entry, or nothing if there is no such entry. It is for lists whose values
// are dense: of 100 values, each of which occurs or not, it takes 28 bytes, and a copy 1,200.
//
// In words of 4 bytes: the low half of the position; bits 0-11 its high half, bits 12-30 the number
// of words of bits, bit 31 whether pointers are wide; the least value; then the bits, from the
// least value on.
#pragma once

#include <bit>
#include <cstdint>

#include "index/elf/lists.h"

namespace perdix::detail::index::elf {

class Outline {
 public:
  static constexpr std::uint64_t kHead = 3;

  /// Words that the outline of a list takes; 0: it has none, as its values are too far apart.
  static std::uint64_t words_for(const List& list) {
    if (list.count == 0 || list.position > kMaxPosition) return 0;
    const std::uint64_t least = list.value(0);
    const std::uint64_t greatest = list.value(list.count - 1);
    if (greatest < least) return 0;  // of a damaged table
    const std::uint64_t bits = (greatest - least) / 32 + 1;
    return bits > kMaxBits || bits > list.count ? 0 : kHead + bits;
  }

  /// Writes the outline of a list. False if its values do not ascend.
  static bool write(const List& list, std::uint64_t words, std::uint32_t* to) {
    const std::uint64_t bits = words - kHead;
    const std::uint32_t wide = list.form == List::Form::wide ? 1 : 0;
    to[0] = static_cast<std::uint32_t>(list.position);
    to[1] =
        static_cast<std::uint32_t>(list.position >> 32 | bits << 12 | std::uint64_t{wide} << 31);
    to[2] = list.value(0);
    std::fill_n(to + kHead, bits, 0);
    std::uint64_t after = 0;  // bits up to that one are written
    for (std::uint32_t i = 0; i < list.count; ++i) {
      const std::uint64_t bit = std::uint64_t{list.value(i)} - to[2];
      if (bit >= bits * 32 || (i > 0 && bit <= after)) return false;
      to[kHead + bit / 32] |= std::uint32_t{1} << bit % 32;
      after = bit;
    }
    return true;
  }

  explicit Outline(const std::uint32_t* words) : words_(words) { note_words_read(false, words, 2); }

  Position position() const { return words_[0] | std::uint64_t{words_[1] & 0xfff} << 32; }

  /// Where the entry of a value leads, which is read in PM; none if there is no such entry.
  Ref find(const Lists& lists, unsigned dimension, std::uint32_t value) const {
    note_words_read(false, words_, kHead + bit_words());
    const std::uint32_t bit = value - words_[2];
    if (value < words_[2] || bit / 32 >= bit_words()) return {};
    const std::uint32_t* bits = words_ + kHead;
    if ((bits[bit / 32] >> bit % 32 & 1) == 0) return {};
    std::uint32_t before = count_in(bits[bit / 32] & ((std::uint32_t{1} << bit % 32) - 1));
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < bit_words(); ++i) {
      before += i < bit / 32 ? count_in(bits[i]) : 0;
      count += count_in(bits[i]);
    }
    return child(lists, dimension, before, count);
  }

 private:
  static constexpr std::uint64_t kMaxBits = 128;  // words
  static constexpr Position kMaxPosition = (Position{1} << 44) - 1;

  static std::uint32_t count_in(std::uint32_t word) {
    return static_cast<std::uint32_t>(std::popcount(word));
  }
  std::uint32_t bit_words() const { return words_[1] >> 12 & 0x7ffff; }

  Ref child(const Lists& lists, unsigned dimension, std::uint32_t i, std::uint32_t count) const {
    const bool wide = words_[1] >> 31 != 0;
    const Position begin = position();
    const std::uint32_t* head = lists.words(begin, list_words(count, wide));
    const List list{head + 1, head + 1 + count,
                    count,    wide ? List::Form::wide : List::Form::narrow,
                    true,     begin};
    return list.child(i, dimension + 1 == lists.dimensions());
  }

  const std::uint32_t* const words_;
};

}  // namespace perdix::detail::index::elf
