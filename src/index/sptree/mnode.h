// A middle node ("Mnode", sptree paper, §4.1): the DRAM side of one leaf, in three cache lines, of
// which a lookup needs two.
//
// Invariants while the lock is free:
//   M1. `low`, `leaf()` never change. `high` ends the range where the successor's begins. `next` is
//       the successor's node, or 0: the leaf is the last one, or its successor is cold, which is to
//       say that it has no middle node since the index was opened (resumer.h).
//   M2. fingerprints[i] is not 0 for the slots of the leaf, without those that the node's write
//       buffer has erased (B3). It and the filter belong to the key in slot i. (Keys in the buffer
//       are not in the filter: they would send more lookups of absent keys to PM.)
//   M3. A node whose lock is marked obsolete was merged into its left neighbour and is no longer
//       reachable; its memory stays until no epoch::Guard can hold it.
// The holder of the lock writes. Readers are optimistic: lock.read_begin(), read,
// lock.read_validate().
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>

#include "epoch/version_lock.h"
#include "index/sptree/bound.h"
#include "index/sptree/filter.h"
#include "index/sptree/layout.h"
#include "util/arena.h"
#include "util/line.h"

namespace perdix::detail::index::sptree {

/// A leaf's address and the number of a write buffer. In one word, since a node has no room for
/// two.
class LeafAndBuffer {
 public:
  static constexpr unsigned kBufferBits = 22;

  explicit LeafAndBuffer(Leaf* leaf) : word_(reinterpret_cast<std::uintptr_t>(leaf) / kUnit) {
    assert(this->leaf() == leaf);
  }

  Leaf* leaf() const {
    return reinterpret_cast<Leaf*>((load() & kLeafMask) * kUnit);  // the user's half of addresses
  }
  std::uint32_t buffer() const { return static_cast<std::uint32_t>(load() >> kLeafBits); }
  void set_buffer(std::uint32_t number) {
    assert(number >> kBufferBits == 0);
    const std::uint64_t buffer = number;
    // release: a thread that finds the number finds the buffer.
    word_.store((load() & kLeafMask) | buffer << kLeafBits, std::memory_order_release);
  }

 private:
  static constexpr std::uintptr_t kUnit = kLeafAlignment;
  static constexpr unsigned kLeafBits = 64 - kBufferBits;
  static constexpr std::uint64_t kLeafMask = (std::uint64_t{1} << kLeafBits) - 1;

  std::uint64_t load() const { return word_.load(std::memory_order_acquire); }

  std::atomic<std::uint64_t> word_;
};

template <Storable K>
struct alignas(64) Mnode {
  using Lock = epoch::SmallVersionLock;
  using Low = typename Bounds<K>::Low;
  using High = typename Bounds<K>::High;

  Mnode(Leaf* the_leaf, Low the_low, High the_high)
      : leaf_and_buffer(the_leaf), low(the_low), high(the_high) {}

  // The first line tells whether the key can be here, and where the next node is.
  Lock lock;
  std::atomic<util::Arena::Ref> next{0};
  LeafAndBuffer leaf_and_buffer;
  const Low low;
  std::atomic<High> high;
  Bloom bloom;
  // Two lines of four columns each tell in which slots the key can be (M2).
  alignas(64) std::array<std::uint8_t, kLeafPairs> fingerprints{};

  Leaf* leaf() const { return leaf_and_buffer.leaf(); }
  std::uint32_t buffer() const { return leaf_and_buffer.buffer(); }  ///< 0: none
  void set_buffer(std::uint32_t number) { leaf_and_buffer.set_buffer(number); }

  // Readers validate the version, writers hold the lock.
  SlotSet slots() const { return ~slots_with(0); }
  unsigned count() const { return slots().count(); }
  bool covers(View<K> key) const {
    return Bounds<K>::covers(high.load(std::memory_order_acquire), key);
  }

  /// Asks for the line with the fingerprints of the key's column and its partner.
  void prefetch_fingerprints(Hash16 hash) const {
    __builtin_prefetch(&fingerprints[first_slot_near(hash)]);
  }

  /// Slots whose key may have this hash. Reads no PM. Has nearly no branch: a mispredicted one
  /// would keep the processor from beginning the caller's next lookup.
  SlotSet candidates(Hash16 hash) const {
    const std::uint8_t print = fingerprint(hash);
    const std::uint64_t pass = bloom.pass_mask(hash);
    if ((pass & bloom.further(hash)) != 0) [[unlikely]]
      return far_candidates(hash);
    const unsigned begin = first_slot_near(hash);
    const std::uint64_t near = util::equal_bytes_of_half_line(&fingerprints[begin], print) &
                               (kOwnAndGuests[column(hash) % 2][bloom.in_partner(hash)] & pass);
    return begin < 64 ? SlotSet({near << begin, 0}) : SlotSet({0, near << (begin - 64)});
  }

  /// A free slot for a key with this hash, as free_slot() chooses it, but only of the key's column
  /// or as a guest of the column's partner: their fingerprints are in the line that a lookup reads,
  /// too. kLeafPairs if there is none.
  unsigned free_slot_near(Hash16 hash) const {
    const unsigned begin = first_slot_near(hash), own = column(hash) % 2;
    const std::uint32_t free = util::equal_bytes_of_half_line(&fingerprints[begin], 0) &
                               static_cast<std::uint32_t>(kOwnAndGuests[own][1]);
    if (free == 0) return kLeafPairs;
    const auto in_own = free & static_cast<std::uint32_t>(kOwnAndGuests[own][0]);
    return begin + static_cast<unsigned>(in_own != 0 ? std::countr_zero(in_own)
                                                     : 31 - std::countl_zero(free));
  }

  /// Records that `slot` holds a key with this hash; its bit in the leaf is set already.
  void add(unsigned slot, Hash16 hash) {
    fingerprints[slot] = fingerprint(hash);
    bloom.add(hash, slot);
  }

  /// Records that `slot` holds no key. The filter may still contain the key, which is harmless.
  void remove(unsigned slot) { fingerprints[slot] = 0; }

  void clear() {
    fingerprints.fill(0);
    bloom.clear();
  }

 private:
  // Masks of the 32 slots of two partners. [i][0]: the column of partner i. [i][1]: also the rows
  // of the other partner that may hold guests of column i.
  static constexpr std::array<std::array<std::uint64_t, 2>, 2> kOwnAndGuests = {
      {{0x0000'ffff, 0xf000'ffff}, {0xffff'0000, 0xffff'f000}}};
  static_assert(kGuestRow == 12 && kRows == 16);

  static unsigned first_slot_near(Hash16 hash) { return column(hash) / 2 * (2 * kRows); }

  /// candidates() where the filter says that keys like this one may be in any column. Not inlined:
  /// vectors of a whole line want a frame that is aligned to one.
  [[gnu::noinline]] SlotSet far_candidates(Hash16 hash) const {
    const SlotSet all = slots_with(fingerprint(hash));
    return bloom.anywhere(hash) ? all : all & (slots_of_column(column(hash)) | kGuestSlots);
  }

  SlotSet slots_with(std::uint8_t print) const {
    return SlotSet({util::equal_bytes(util::load_line(&fingerprints[0]), print),
                    util::equal_bytes(util::load_line(&fingerprints[64]), print)});
  }
};

static_assert(sizeof(Mnode<std::uint64_t>) == 192 && sizeof(Mnode<std::string>) == 192);

}  // namespace perdix::detail::index::sptree
