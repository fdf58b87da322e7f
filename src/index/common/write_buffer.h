// A write buffer (sptree paper, §3, §4.1, §4.4): the newest changes of one leaf, in DRAM and in the
// log, until a batch of them is merged into the leaf. The Shape of an engine says what a leaf is
// there, and how many pairs its buffers hold.
//
// Invariants while the node's lock is free:
//   B1. Its chain in the log says the same: replaying the chain's records gives the erased
//       slots and the pairs.
//   B2. Its keys are in the node's range, and none of them is in the leaf, but in slots of
//       erased slots.
//   B3. `erased_slots()` has the slots of the leaf whose pair is erased though its bit in PM is
//       still set. They are not used for other pairs before the buffer has been merged, since the
//       chain would take those for erased after a crash.
//   B4. Of its pairs, at most `sure` have no free slot in the leaf. The chain has room for as many
//       more records, besides its END, whatever else is full: so each pair can be erased, and a
//       buffer whose pairs all have a slot can be merged.
// Written by the holder of the node's lock; readers are optimistic and validate the node's version.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "index/common/codec.h"
#include "util/line.h"
#include "wal/chain.h"

namespace perdix::detail::index {

/// The properties of an engine's buffers: the node that has one, in DRAM; a set of the slots of its
/// leaf; how many changes a buffer holds and how many slots a leaf has; how many bits a node keeps
/// of its buffer's number; and a byte of a key's hash.
template <class S>
concept BufferShape = requires(Hash16 hash) {
  typename S::Node;
  typename S::Slots;
  { S::kPairs } -> std::convertible_to<unsigned>;
  { S::kSlots } -> std::convertible_to<unsigned>;
  { S::kNumberBits } -> std::convertible_to<unsigned>;
  { S::fingerprint(hash) } -> std::same_as<std::uint8_t>;
};

/// The part of a buffer's first line that a chain leaves: slots of the leaf whose pair is erased
/// (B3).
template <class Slots>
class ErasedSlots {
 public:
  Slots get() const {
    return Slots(
        {words_[0].load(std::memory_order_relaxed), words_[1].load(std::memory_order_relaxed)});
  }
  void set(Slots slots) {
    for (unsigned i = 0; i < Slots::kWords; ++i)
      words_[i].store(slots.word(i), std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, Slots::kWords> words_{};
  // So that what each append needs of the chain begins the next line.
  [[maybe_unused]] std::uint64_t unused_ = 0;
};

/// For leaves of which no pair is erased but in its place.
struct NoSlots {
  static constexpr unsigned kWords = 0;
  static constexpr unsigned count() { return 0; }
  static constexpr std::uint64_t word(unsigned) { return 0; }
};

/// With 28 pairs nine lines. The second is all that most changes need, besides the line of their
/// pair; the first of a chain, and those that erase a pair of the leaf, need the first, too.
template <BufferShape S>
struct alignas(64) WriteBuffer : private ErasedSlots<typename S::Slots>, wal::Chain {
  using Shape = S;
  using Node = typename S::Node;
  using Slots = typename S::Slots;

  static constexpr unsigned kPairs = S::kPairs;
  static constexpr unsigned kHalfLine = 32;  ///< fingerprints that are compared together

  /// Records after which a chain is merged though the buffer has room: updates of buffered pairs
  /// add records, and code that follows a chain after a restart must be able to rely on its length.
  static constexpr unsigned kChainRecords = 4 * kPairs;

  /// Numbers of pairs, slots and records.
  using Count = std::conditional_t<(kChainRecords < 256), std::uint8_t, std::uint16_t>;

  Slots erased_slots() const { return ErasedSlots<Slots>::get(); }
  void set_erased(Slots slots) {
    ErasedSlots<Slots>::set(slots);
    erased_ = static_cast<Count>(slots.count());
  }

  unsigned size() const { return size_.load(std::memory_order_acquire); }
  bool empty() const { return size() == 0 && erased_ == 0; }
  bool empty_chain() const { return head.load(std::memory_order_relaxed) == 0; }
  bool full() const { return size() + erased_ >= kPairs || records >= kChainRecords; }

  /// How many of its pairs, and `more`, have no slot in a leaf with `taken` used slots (B4).
  unsigned without_slot(unsigned taken, unsigned more = 0) const {
    const unsigned all = taken + size() + more;
    return all > S::kSlots ? all - S::kSlots : 0;
  }

  // acquire and release: a thread that sees a word sees the bytes of its string. This holds even
  // for a reader that counts pairs which were removed in between.
  Word key(unsigned i) const { return pairs_[i].key.load(std::memory_order_acquire); }
  Word value(unsigned i) const { return pairs_[i].value.load(std::memory_order_acquire); }
  void set_value(unsigned i, Word value) {
    pairs_[i].value.store(value, std::memory_order_release);
  }

  /// Asks for the line that a change needs, and then for that of the next pair.
  void prefetch_for_change() const { __builtin_prefetch(&head, 1); }
  void prefetch_next_pair() const { __builtin_prefetch(&pairs_[size() % kPairs], 1); }

  /// Asks for the line that a lookup needs, and then for that of the pair that may be the key's.
  void prefetch_for_lookup() const { __builtin_prefetch(&head); }
  void prefetch_pair(Hash16 hash) const {
    if (const unsigned alike = candidates(hash); alike != 0)
      __builtin_prefetch(&pairs_[std::countr_zero(alike)]);
  }

  /// Bit i: the key of pair i may have this hash.
  unsigned candidates(Hash16 hash) const requires(kPairs < kHalfLine) {
    const unsigned alike =
        util::equal_bytes_of_half_line(fingerprints_.data(), S::fingerprint(hash));
    return alike & ((1u << size()) - 1);
  }

  /// The first pair whose key may have this hash and for which is_it(i); -1 if there is none.
  template <class IsIt>
  int find(Hash16 hash, IsIt is_it) const {
    const unsigned count = size();
    for (unsigned begin = 0; begin < count; begin += kHalfLine) {
      unsigned alike = util::equal_bytes_of_half_line(&fingerprints_[begin], S::fingerprint(hash));
      if (count - begin < kHalfLine) alike &= (1u << (count - begin)) - 1;
      for (; alike != 0; alike &= alike - 1) {
        const unsigned i = begin + static_cast<unsigned>(std::countr_zero(alike));
        if (is_it(i)) return static_cast<int>(i);
      }
    }
    return -1;
  }

  void push(Word key, Word value, Hash16 hash) {
    const unsigned i = size();
    assert(i < kPairs);
    set(i, key, value, S::fingerprint(hash));
    // release: a thread that counts the pair sees it, and no old word whose bytes are gone.
    size_.store(static_cast<Count>(i + 1), std::memory_order_release);
  }

  /// Fills the gap with the last pair.
  void remove(unsigned i) {
    const unsigned last = size() - 1;
    set(i, key(last), value(last), fingerprint_at(last));
    size_.store(static_cast<Count>(last), std::memory_order_relaxed);
  }

  /// Nothing is left; the chain is another matter.
  void clear() {
    size_.store(0, std::memory_order_relaxed);
    set_erased(Slots());
    records = 0;
  }

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

 public:
  std::atomic<Node*> node{nullptr};  ///< whose changes it holds; nullptr: no node's

 private:
  alignas(kHalfLine) std::array<std::uint8_t, kPairs> fingerprints_{};
  std::atomic<Count> size_{0};
  Count erased_ = 0;  // how many slots are, in the line that each change needs

 public:
  Count records = 0;             ///< of the chain
  std::atomic<bool> hot{false};  ///< written to since the last look for a cold one

 private:
  std::array<Pair, kPairs> pairs_{};
};

}  // namespace perdix::detail::index
