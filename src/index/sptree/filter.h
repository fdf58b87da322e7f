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

/// A Bloom filter of 120 bits, two per key: the optimum for the 45 keys of an average leaf. Each of
/// the two has a word of its own, so that a lookup finds it with one shift. And two bits for each
/// column, which say whether keys of it had to go to its partner, or further.
///
/// A key that is not there passes the filter with a chance of 1 in 4, and then meets the
/// fingerprints of its column: together 1 to 2 %.
class Bloom {
 public:
  static constexpr unsigned kBitsPerKey = 2;

  void add(Hash16 hash) {
    set(0, first(hash));
    set(1, second(hash));
  }

  /// Of a key that lies in this slot.
  void add(Hash16 hash, unsigned slot) {
    add(hash);
    const unsigned own = column(hash), actual = column_of_slot(slot);
    if (actual == own) return;
    set(1, flags_at(own) + (actual == partner(own) ? 0 : 1));
  }

  bool may_contain(Hash16 hash) const { return pass_mask(hash) != 0; }

  /// All ones if the filter may contain the hash, else 0: for callers that go on without a branch.
  std::uint64_t pass_mask(Hash16 hash) const {
    return -(word(0) >> first(hash) & word(1) >> second(hash) & std::uint64_t{1});
  }

  /// The slots where a key with this hash may lie.
  std::uint64_t slots(Hash16 hash) const {
    const unsigned own = column(hash);
    return kSlots[own][word(1) >> flags_at(own) & 3];
  }

  void clear() {
    for (std::size_t i = 0; i < words_.size(); ++i) store(i, 0);
  }

  /// Of the filter.
  unsigned bits_set() const {
    constexpr std::uint64_t kFilter = (std::uint64_t{1} << kBitsBesideFlags) - 1;
    return static_cast<unsigned>(std::popcount(word(0)) + std::popcount(word(1) & kFilter));
  }

 private:
  static constexpr unsigned kBitsBesideFlags = 64 - 2 * kColumns;

  // By column and its flags: with the partner, further.
  static constexpr auto kSlots = [] {
    std::array<std::array<std::uint64_t, 4>, kColumns> slots{};
    for (unsigned own = 0; own < kColumns; ++own) {
      slots[own][0] = slots_of_column(own);
      slots[own][1] = slots_of_column(own) | slots_of_column(partner(own));
      slots[own][2] = slots[own][3] = ~std::uint64_t{0};
    }
    return slots;
  }();

  static constexpr unsigned flags_at(unsigned column) { return kBitsBesideFlags + 2 * column; }

  // The first position uses bits that neither fingerprint nor column do, so that the filters are
  // nearly independent.
  static unsigned first(Hash16 hash) { return hash >> 10; }
  static unsigned second(Hash16 hash) {
    return static_cast<Hash16>(hash * 0x9E37u) * kBitsBesideFlags >> 16;
  }

  // relaxed: readers validate the leaf's version, which orders the reads.
  std::uint64_t word(std::size_t i) const { return words_[i].load(std::memory_order_relaxed); }
  void store(std::size_t i, std::uint64_t value) {
    words_[i].store(value, std::memory_order_relaxed);
  }

  void set(std::size_t i, unsigned bit) { store(i, word(i) | std::uint64_t{1} << bit); }

  std::array<std::atomic<std::uint64_t>, 2> words_{};
};

}  // namespace perdix::index::sptree
