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

#include "index/common/codec.h"
#include "index/sptree/slots.h"

namespace perdix::detail::index::sptree {

/// Never 0, which stands for a free slot. (1 is twice as frequent, at no price worth mentioning.)
inline std::uint8_t fingerprint(Hash16 hash) {
  const auto low = static_cast<std::uint8_t>(hash);
  return low != 0 ? low : 1;
}

// A key prefers a slot in the column that its hash names, so that a lookup compares an eighth of
// the fingerprints: the bits of the hash that decide the place need not be in the fingerprint.
// Columns are filled from the first row on. Keys whose column is full are guests of other columns,
// in their last rows as long as there is room, so that a lookup of a guest need not compare all.

inline constexpr unsigned kGuestRow = 12;  ///< the first of those rows
inline constexpr SlotSet kGuestSlots = slots_of_last_rows(kGuestRow);

inline unsigned column(Hash16 hash) { return hash >> 8 & (kColumns - 1); }
constexpr unsigned partner(unsigned column) { return column ^ 1; }

/// Where a key with this hash goes: to the first free slot of its column; as a guest to the
/// column's partner, or to another column; or anywhere. kLeafPairs if no slot is free.
inline unsigned free_slot(SlotSet taken, Hash16 hash) {
  const unsigned own = column(hash);
  if (const SlotSet free = slots_of_column(own) - taken; !free.empty()) return free.first();
  const SlotSet guests = kGuestSlots - taken;
  if (const SlotSet free = guests & slots_of_column(partner(own)); !free.empty())
    return free.last();
  // The last row first, which fewest columns need themselves.
  for (unsigned row = kRows - 1; row >= kGuestRow; --row) {
    if (const SlotSet free = guests & slots_of_last_rows(row); !free.empty()) return free.first();
  }
  return (~taken).first();
}

/// A Bloom filter of 240 bits, two per key: the optimum for the 90 keys of an average leaf. The
/// first is in the first two words, the second in the others. And two bits for each column, which
/// say how far keys of it had to go: nowhere, to its partner as guests, to any column as guests, or
/// anywhere.
///
/// A key that is not there passes the filter with a chance of 1 in 4, and then meets the
/// fingerprints of its column: together 1 % with 80 keys, 7 % with 128, and 2 % over leaves as
/// random inserts leave them.
class Bloom {
 public:
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
    if (!kGuestSlots.contains(slot)) {
      set(flag_at(own, kNear));
      set(flag_at(own, kFar));
    } else if (actual != partner(own)) {
      // Nothing is lost if near guests are there, too: partners count among all.
      if (!bit(flag_at(own, kFar))) clear(flag_at(own, kNear));
      set(flag_at(own, kFar));
    } else if (!bit(flag_at(own, kFar))) {
      set(flag_at(own, kNear));
    }
  }

  bool may_contain(Hash16 hash) const { return pass_mask(hash) != 0; }

  /// All ones if the filter may contain the hash, else 0: for callers that go on without a branch.
  std::uint64_t pass_mask(Hash16 hash) const { return -(bit(first(hash)) & bit(second(hash))); }

  /// Keys of this one's column may be guests of its partner; 0 or 1. Not asked if they may be
  /// further away.
  std::uint64_t in_partner(Hash16 hash) const { return bit(flag_at(column(hash), kNear)); }
  /// Keys of this one's column may be guests of any column, or anywhere.
  std::uint64_t further(Hash16 hash) const { return bit(flag_at(column(hash), kFar)); }
  /// If they may be further away: anywhere.
  std::uint64_t anywhere(Hash16 hash) const { return bit(flag_at(column(hash), kNear)); }

  void clear() {
    for (auto& word : words_) word.store(0, std::memory_order_relaxed);
  }

  /// Of the filter.
  unsigned bits_set() const {
    unsigned bits = 0;
    for (const auto& word : words_)
      bits += static_cast<unsigned>(std::popcount(word.load(std::memory_order_relaxed)));
    const std::uint64_t flags = words_.back().load(std::memory_order_relaxed) >> (kFlags % 64);
    return bits - static_cast<unsigned>(std::popcount(flags));
  }

 private:
  static constexpr unsigned kSecond = 128;                // positions of the second bits
  static constexpr unsigned kFlags = 256 - 2 * kColumns;  // and of the flags
  static constexpr unsigned kNear = 0, kFar = 1;          // both: anywhere

  static constexpr unsigned flag_at(unsigned column, unsigned which) {
    return kFlags + 2 * column + which;
  }

  // The first position uses few bits that fingerprint or column do, so that the filters are nearly
  // independent.
  static unsigned first(Hash16 hash) { return hash >> 9; }
  static unsigned second(Hash16 hash) {
    return kSecond + (static_cast<Hash16>(hash * 0x9E37u) * (kFlags - kSecond) >> 16);
  }

  // relaxed: readers validate the leaf's version, which orders the reads.
  std::uint64_t bit(unsigned i) const {
    return words_[i / 64].load(std::memory_order_relaxed) >> i % 64 & 1;
  }
  void set(unsigned i) {
    auto& word = words_[i / 64];
    word.store(word.load(std::memory_order_relaxed) | std::uint64_t{1} << i % 64,
               std::memory_order_relaxed);
  }

  void clear(unsigned i) {
    auto& word = words_[i / 64];
    word.store(word.load(std::memory_order_relaxed) & ~(std::uint64_t{1} << i % 64),
               std::memory_order_relaxed);
  }

  std::array<std::atomic<std::uint64_t>, 4> words_{};
};

}  // namespace perdix::detail::index::sptree
