// A write buffer (sptree.txt §4.1, §4.4): the newest changes of one leaf, in DRAM and in the log,
// until a batch of them is merged into the leaf.
//
// Invariants while the node's lock is free:
//   B1. Its chain in the log says the same: replaying the chain's records gives the erased
//       slots and the pairs.
//   B2. Its keys are in the node's range, and none of them is in the leaf, but in slots of
//       erased slots.
//   B3. `erased_slots()` has the slots of the leaf whose pair is erased though its bit in PM is
//       still set. They are not used for other pairs before the buffer has been merged, since the
//       chain would take those for erased after a crash.
// Written by the holder of the node's lock; readers are optimistic and validate the node's version.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>

#include "index/sptree/filter.h"
#include "util/line.h"
#include "wal/chain.h"

namespace perdix::index::sptree {

/// Changes that a buffer holds: pairs and tombstones. The paper's 14 for each 64 slots of the leaf.
inline constexpr unsigned kBufferPairs = 28;

/// Records after which a chain is merged though the buffer has room: updates of buffered pairs add
/// records, and what follows a chain after a restart must be able to trust in its length.
inline constexpr unsigned kChainRecords = 4 * kBufferPairs;

/// Nine lines. The first two are all that a change needs, besides the line of its pair.
template <class Node>
struct alignas(64) WriteBuffer : wal::Chain {
  SlotSet erased_slots() const {
    return SlotSet(
        {erased_[0].load(std::memory_order_relaxed), erased_[1].load(std::memory_order_relaxed)});
  }
  void set_erased(SlotSet slots) {
    for (unsigned i = 0; i < SlotSet::kWords; ++i)
      erased_[i].store(slots.word(i), std::memory_order_relaxed);
  }
  unsigned size() const { return size_.load(std::memory_order_acquire); }
  bool empty() const { return size() == 0 && erased_slots().empty(); }
  bool full() const {
    return size() + erased_slots().count() >= kBufferPairs || records >= kChainRecords;
  }

  // acquire and release: who sees a word sees the bytes of its string, also a reader that counts
  // pairs which are gone meanwhile.
  Word key(unsigned i) const { return pairs_[i].key.load(std::memory_order_acquire); }
  Word value(unsigned i) const { return pairs_[i].value.load(std::memory_order_acquire); }
  void set_value(unsigned i, Word value) {
    pairs_[i].value.store(value, std::memory_order_release);
  }

  /// Asks for the lines of a change, and for that of the next pair.
  void prefetch() const {
    const auto* lines = reinterpret_cast<const char*>(this);
    __builtin_prefetch(lines, 1);
    __builtin_prefetch(lines + 64, 1);
  }
  void prefetch_next_pair() const { __builtin_prefetch(&pairs_[size() % kBufferPairs], 1); }

  /// Bit i: the key of pair i may have this hash.
  unsigned candidates(Hash16 hash) const {
    const unsigned alike =
        util::equal_bytes_of_half_line(fingerprints_.data(), sptree::fingerprint(hash));
    return alike & ((1u << size()) - 1);
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
    set_erased(SlotSet());
    records = 0;
  }

  std::uint8_t records = 0;      ///< of the chain
  std::atomic<bool> hot{false};  ///< written to since the last look for a cold one

 private:
  struct Pair {
    std::atomic<Word> key;
    std::atomic<Word> value;
  };

  void set(unsigned i, Word key, Word value, std::uint8_t print) {
    pairs_[i].key.store(key, std::memory_order_release);
    pairs_[i].value.store(value, std::memory_order_release);
    fingerprints_[i] = print;
  }

  std::uint8_t fingerprint_at(unsigned i) const { return fingerprints_[i]; }

  std::atomic<std::uint8_t> size_{0};

 public:
  std::atomic<Node*> node{nullptr};  ///< whose changes it holds; nullptr: nobody's

 private:
  std::array<std::atomic<std::uint64_t>, SlotSet::kWords> erased_{};  // B3
  alignas(32) std::array<std::uint8_t, 32> fingerprints_{};
  std::array<Pair, kBufferPairs> pairs_{};
};

static_assert(sizeof(WriteBuffer<int>) == 576);

}  // namespace perdix::index::sptree
