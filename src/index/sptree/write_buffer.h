// A write buffer (sptree.txt §4.1, §4.4): the newest changes of one leaf, in DRAM and in the log,
// until a batch of them is merged into the leaf.
//
// Invariants while the node's lock is free:
//   B1. Its chain in the log says the same: replaying the chain's records gives `erased` and the
//       pairs.
//   B2. Its keys are in the node's range, and none of them is in the leaf, but in slots of
//       `erased`.
//   B3. `erased` has the slots of the leaf whose pair is erased though its bit in PM is still set.
//       They are not used for other pairs before the buffer has been merged, since the chain would
//       take those for erased after a crash.
// Written by the holder of the node's lock; readers are optimistic and validate the node's version.
#pragma once

#include <emmintrin.h>

#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>

#include "index/sptree/filter.h"
#include "wal/chain.h"

namespace perdix::index::sptree {

inline constexpr unsigned kBufferPairs = 14;  ///< changes that a buffer holds: pairs and tombstones

/// Records after which a chain is merged though the buffer has room: updates of buffered pairs add
/// records, and what follows a chain after a restart must be able to trust in its length.
inline constexpr unsigned kChainRecords = 4 * kBufferPairs;

template <class Node>
struct WriteBuffer : wal::Chain {
  std::atomic<Node*> node{nullptr};      ///< whose changes it holds; nullptr: nobody's
  std::atomic<std::uint64_t> erased{0};  ///< B3
  std::atomic<bool> hot{false};          ///< written to since the last look for a cold one
  std::uint8_t records = 0;              ///< of the chain

  std::uint64_t erased_slots() const { return erased.load(std::memory_order_relaxed); }
  unsigned size() const { return size_.load(std::memory_order_acquire); }
  bool empty() const { return size() == 0 && erased_slots() == 0; }
  bool full() const {
    return size() + static_cast<unsigned>(std::popcount(erased_slots())) >= kBufferPairs ||
           records >= kChainRecords;
  }

  Word key(unsigned i) const { return keys_[i].load(std::memory_order_relaxed); }
  Word value(unsigned i) const { return values_[i].load(std::memory_order_relaxed); }
  void set_value(unsigned i, Word value) { values_[i].store(value, std::memory_order_relaxed); }

  /// Bit i: the key of pair i may have this hash.
  unsigned candidates(Hash16 hash) const {
    const auto low = static_cast<long long>(fingerprints_[0].load(std::memory_order_relaxed));
    const auto high = static_cast<long long>(fingerprints_[1].load(std::memory_order_relaxed));
    const __m128i equal = _mm_cmpeq_epi8(_mm_set_epi64x(high, low),
                                         _mm_set1_epi8(static_cast<char>(fingerprint(hash))));
    return static_cast<unsigned>(_mm_movemask_epi8(equal)) & ((1u << size()) - 1);
  }

  void push(Word key, Word value, Hash16 hash) {
    const unsigned i = size();
    assert(i < kBufferPairs);
    set(i, key, value, fingerprint(hash));
    // release: who counts the pair sees it, and no word of long ago whose bytes are gone.
    size_.store(static_cast<std::uint8_t>(i + 1), std::memory_order_release);
  }

  /// Fills the gap with the last pair.
  void remove(unsigned i) {
    const unsigned last = size() - 1;
    set(i, key(last), value(last), fingerprint_at(last));
    size_.store(static_cast<std::uint8_t>(last), std::memory_order_relaxed);
  }

  /// Nothing is left; the chain is another matter.
  void clear() {
    size_.store(0, std::memory_order_relaxed);
    erased.store(0, std::memory_order_relaxed);
    records = 0;
  }

 private:
  void set(unsigned i, Word key, Word value, std::uint8_t print) {
    keys_[i].store(key, std::memory_order_relaxed);
    values_[i].store(value, std::memory_order_relaxed);
    auto& word = fingerprints_[i / 8];
    const unsigned shift = 8 * (i % 8);
    const std::uint64_t others = word.load(std::memory_order_relaxed) & ~(0xffULL << shift);
    word.store(others | std::uint64_t{print} << shift, std::memory_order_relaxed);
  }

  std::uint8_t fingerprint_at(unsigned i) const {
    return static_cast<std::uint8_t>(fingerprints_[i / 8].load(std::memory_order_relaxed) >>
                                     (8 * (i % 8)));
  }

  std::atomic<std::uint8_t> size_{0};
  std::array<std::atomic<std::uint64_t>, 2> fingerprints_{};
  std::array<std::atomic<Word>, kBufferPairs> keys_{};
  std::array<std::atomic<Word>, kBufferPairs> values_{};
};

}  // namespace perdix::index::sptree
