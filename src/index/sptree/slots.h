// The slots of a leaf, and sets of them.
//
// Slots are eight columns of sixteen, numbered column by column: in the middle node the
// fingerprints of a column lie together. In the leaf the slots of a row do, one of each column, so
// that pairs which are written together share lines though their columns differ. A line of a leaf
// holds half of a row, and both halves of all rows have a word of the set each.
//
// Pure functions.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <iterator>

namespace perdix::detail::index::sptree {

inline constexpr unsigned kLeafPairs = 128;
inline constexpr unsigned kColumns = 8;
inline constexpr unsigned kRows = kLeafPairs / kColumns;

constexpr unsigned column_of_slot(unsigned slot) { return slot / kRows; }

/// Where a slot's pair lies in the leaf.
constexpr unsigned place_of_slot(unsigned slot) {
  return slot % kRows * kColumns + column_of_slot(slot);
}

/// A set of slots: bit i of word w is slot 64 * w + i.
class SlotSet {
 public:
  static constexpr unsigned kWords = kLeafPairs / 64;

  constexpr SlotSet() = default;
  constexpr explicit SlotSet(std::array<std::uint64_t, kWords> words) : words_(words) {}

  static constexpr SlotSet all() { return SlotSet({~std::uint64_t{0}, ~std::uint64_t{0}}); }
  static constexpr SlotSet of(unsigned slot) {
    SlotSet set;
    set.add(slot);
    return set;
  }

  /// The slots of a word: 64 * number + i for each bit i.
  constexpr std::uint64_t word(unsigned number) const { return words_[number]; }

  constexpr bool empty() const { return (words_[0] | words_[1]) == 0; }
  constexpr unsigned count() const {
    return static_cast<unsigned>(std::popcount(words_[0]) + std::popcount(words_[1]));
  }
  constexpr bool contains(unsigned slot) const { return words_[slot / 64] >> slot % 64 & 1; }

  /// The least; kLeafPairs if there is none.
  constexpr unsigned first() const {
    return static_cast<unsigned>(words_[0] != 0 ? std::countr_zero(words_[0])
                                                : 64 + std::countr_zero(words_[1]));
  }

  /// The greatest; there is one.
  constexpr unsigned last() const {
    return static_cast<unsigned>(words_[1] != 0 ? 127 - std::countl_zero(words_[1])
                                                : 63 - std::countl_zero(words_[0]));
  }

  constexpr void add(unsigned slot) { words_[slot / 64] |= std::uint64_t{1} << slot % 64; }

  friend constexpr SlotSet operator|(SlotSet a, SlotSet b) {
    return SlotSet({a.words_[0] | b.words_[0], a.words_[1] | b.words_[1]});
  }
  friend constexpr SlotSet operator&(SlotSet a, SlotSet b) {
    return SlotSet({a.words_[0] & b.words_[0], a.words_[1] & b.words_[1]});
  }
  /// Those of `a` that are not in `b`.
  friend constexpr SlotSet operator-(SlotSet a, SlotSet b) {
    return SlotSet({a.words_[0] & ~b.words_[0], a.words_[1] & ~b.words_[1]});
  }
  constexpr SlotSet operator~() const { return all() - *this; }
  friend constexpr bool operator==(SlotSet, SlotSet) = default;

  /// Visits the slots in ascending order.
  class Iterator;
  constexpr Iterator begin() const;
  constexpr std::default_sentinel_t end() const { return {}; }

 private:
  std::array<std::uint64_t, kWords> words_{};
};

class SlotSet::Iterator {
 public:
  constexpr explicit Iterator(SlotSet left) : left_(left) {}
  constexpr unsigned operator*() const { return left_.first(); }
  constexpr Iterator& operator++() {
    // Each word by a constant number, so that both stay in registers.
    if (left_.words_[0] != 0) {
      left_.words_[0] &= left_.words_[0] - 1;
    } else {
      left_.words_[1] &= left_.words_[1] - 1;
    }
    return *this;
  }
  /// Not with another iterator, which compilers would keep in memory.
  friend constexpr bool operator==(Iterator a, std::default_sentinel_t) { return a.left_.empty(); }

 private:
  SlotSet left_;
};

constexpr SlotSet::Iterator SlotSet::begin() const { return Iterator(*this); }

constexpr SlotSet slots_of_column(unsigned column) {
  constexpr std::uint64_t kColumn = (std::uint64_t{1} << kRows) - 1;
  const std::uint64_t word = kColumn << (column * kRows % 64);
  return column * kRows < 64 ? SlotSet({word, 0}) : SlotSet({0, word});
}

/// Rows from `first` on, of all columns.
constexpr SlotSet slots_of_last_rows(unsigned first) {
  constexpr std::uint64_t kOfEachColumn = 0x0001'0001'0001'0001;  // in a word
  const std::uint64_t word = kOfEachColumn * ((std::uint64_t{1} << kRows) - (1u << first));
  return SlotSet({word, word});
}

/// Rows of which a word of a set has a slot: bit i for row i.
constexpr std::uint16_t rows_of_word(std::uint64_t word) {
  const std::uint64_t folded = word | word >> 2 * kRows;
  return static_cast<std::uint16_t>(folded | folded >> kRows);
}

}  // namespace perdix::detail::index::sptree
