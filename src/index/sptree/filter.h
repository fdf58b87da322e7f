// The Bloom filter of a leaf's keys, and their fingerprints, both functions of a key's 16-bit hash.
//
// The paper keeps fingerprints in PM beside the pairs (§4.1). Here they are in DRAM beside the
// filter: an insert then writes one PM line less, a lookup reads exactly the line of its pair, and
// both are rebuilt from the pairs on open (from the words alone: a string key's word holds its
// hash).
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

/// A Bloom filter of 128 bits, two per key: the optimum for the 45 keys of an average leaf. A key
/// passes that is not there with a chance of 1 in 4, and then meets the fingerprints: together 4 %,
/// for 9 bytes of DRAM per key less than a filter alone.
class Bloom {
 public:
  static constexpr unsigned kBits = 128;
  static constexpr unsigned kBitsPerKey = 2;

  void add(Hash16 hash) {
    set(first(hash));
    set(second(hash));
  }

  bool may_contain(Hash16 hash) const { return test(first(hash)) && test(second(hash)); }

  void add_all(const Bloom& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) store(i, word(i) | other.word(i));
  }

  void clear() {
    for (std::size_t i = 0; i < words_.size(); ++i) store(i, 0);
  }

  unsigned bits_set() const {
    return static_cast<unsigned>(std::popcount(word(0)) + std::popcount(word(1)));
  }

 private:
  // The first position uses bits that the fingerprint doesn't, so that the two filters are nearly
  // independent.
  static unsigned first(Hash16 hash) { return hash >> 9; }
  static unsigned second(Hash16 hash) { return static_cast<Hash16>(hash * 0x9E37u) >> 9; }

  // relaxed: readers validate the leaf's version, which orders the reads.
  std::uint64_t word(std::size_t i) const { return words_[i].load(std::memory_order_relaxed); }
  void store(std::size_t i, std::uint64_t value) {
    words_[i].store(value, std::memory_order_relaxed);
  }

  void set(unsigned bit) { store(bit / 64, word(bit / 64) | std::uint64_t{1} << (bit % 64)); }
  bool test(unsigned bit) const { return (word(bit / 64) >> (bit % 64) & 1) != 0; }

  std::array<std::atomic<std::uint64_t>, kBits / 64> words_{};
};

}  // namespace perdix::index::sptree
