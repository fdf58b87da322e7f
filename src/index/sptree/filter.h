// The Bloom filter of a leaf's keys, their fingerprints, and the slots that they prefer: functions
// of a key's 16-bit hash.
//
// The paper keeps fingerprints in PM beside the pairs (§4.1). Here they are in DRAM beside the
// filter: an insert then writes one PM line less, a lookup reads exactly the line of its pair, and
// both are rebuilt from the pairs after a restart (from the words alone: a string key's word holds
// its hash).
//
// One writer (the holder of the leaf's lock); readers are optimistic and validate the leaf's
// version.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "index/common/word.h"

namespace perdix::index::sptree {

inline std::uint8_t fingerprint(Hash16 hash) { return static_cast<std::uint8_t>(hash); }

// A leaf's slots are four columns, one slot of each in a row of 64 bytes. A key prefers a slot in
// the column that its hash names, so that a lookup compares a quarter of the fingerprints: what the
// place says need not be in the fingerprint. Rows are filled from the first one on, so that pairs
// which are written together share lines, as they would without columns.

inline constexpr unsigned kColumns = 4;

inline unsigned column(Hash16 hash) { return hash >> 8 & (kColumns - 1); }
constexpr unsigned column_of_slot(unsigned slot) { return slot % kColumns; }
constexpr unsigned partner(unsigned column) { return column ^ 1; }
constexpr std::uint64_t slots_of_column(unsigned column) {
  return std::uint64_t{0x1111'1111'1111'1111} << column;
}

/// Where a key with this hash goes: to the first free slot of its column, or, if that is full, of
/// the column's partner, or of all. kLeafPairs if none is free.
inline unsigned free_slot(std::uint64_t taken, Hash16 hash) {
  const unsigned own = column(hash);
  std::uint64_t free = ~taken & slots_of_column(own);
  if (free == 0) free = ~taken & slots_of_column(partner(own));
  if (free == 0) free = ~taken;
  return static_cast<unsigned>(std::countr_zero(free));
}

/// A Bloom filter of 120 bits, two per key: the optimum for the 45 keys of an average leaf. And two
/// bits for each column, which say whether keys of it had to go to its partner, or further.
///
/// A key that is not there passes the filter with a chance of 1 in 4, and then meets the
/// fingerprints of its column: together 1 to 2 %.
class Bloom {
 public:
  static constexpr unsigned kBits = 120;
  static constexpr unsigned kBitsPerKey = 2;

  void add(Hash16 hash) {
    set(first(hash));
    set(second(hash));
  }

  /// Of a key that lies in this slot.
  void add(Hash16 hash, unsigned slot) {
    add(hash);
    const unsigned own = column(hash), actual = column_of_slot(slot);
    if (actual == own) return;
    set((actual == partner(own) ? kWithPartner : kFurther) + own);
  }

  bool may_contain(Hash16 hash) const { return pass_mask(hash) != 0; }

  /// All ones if the filter may contain the hash, else 0: for callers that go on without a branch.
  std::uint64_t pass_mask(Hash16 hash) const {
    return -(bit(first(hash)) & bit(second(hash)) & std::uint64_t{1});
  }

  /// The slots where a key with this hash may lie.
  std::uint64_t slots(Hash16 hash) const {
    const unsigned own = column(hash);
    return slots_of_column(own) | -(bit(kFurther + own) & std::uint64_t{1}) |
           (-(bit(kWithPartner + own) & std::uint64_t{1}) & slots_of_column(partner(own)));
  }

  void clear() {
    for (std::size_t i = 0; i < words_.size(); ++i) store(i, 0);
  }

  /// Of the filter.
  unsigned bits_set() const {
    constexpr std::uint64_t kFilter = (std::uint64_t{1} << kBits % 64) - 1;
    return static_cast<unsigned>(std::popcount(word(0)) + std::popcount(word(1) & kFilter));
  }

 private:
  static constexpr unsigned kWithPartner = kBits, kFurther = kBits + kColumns;

  // The first position uses bits that the fingerprint doesn't, so that the two filters are nearly
  // independent.
  static unsigned first(Hash16 hash) { return position(hash >> 9); }
  static unsigned second(Hash16 hash) { return position(static_cast<Hash16>(hash * 0x9E37u) >> 9); }
  static unsigned position(int seven_bits) {
    return std::min(static_cast<unsigned>(seven_bits), kBits - 1);
  }

  // relaxed: readers validate the leaf's version, which orders the reads.
  std::uint64_t word(std::size_t i) const { return words_[i].load(std::memory_order_relaxed); }
  void store(std::size_t i, std::uint64_t value) {
    words_[i].store(value, std::memory_order_relaxed);
  }

  void set(unsigned bit) { store(bit / 64, word(bit / 64) | std::uint64_t{1} << (bit % 64)); }

  /// Bit 0 of the result says whether the bit is set; the others mean nothing.
  std::uint64_t bit(unsigned position) const { return word(position / 64) >> (position % 64); }

  std::array<std::atomic<std::uint64_t>, 2> words_{};
};

}  // namespace perdix::index::sptree
