// The DRAM side of a leaf (NBTree (docs/papers.md), section III-A, the "metadata layer"), and its
// place in the tree.
//
// A Position stands for one anchor: it stays while the leaf at it is replaced. A Leaf stands for
// one block; all of it that changes is atomic, and it is written by any thread. Leaves, positions
// and SMOs that are out of reach are released when no epoch::Guard can hold them. There is one of
// each for some forty pairs, so what can share a word does.
//
// Invariants:
//   1. A slot is taken by changing its fingerprint from 0, the first free slot first. So when a
//   slot is taken, all slots before it have been taken.
//   2. A slot's bit in `visible` is set after its entry is durable and live. It may be cleared once
//   the entry is dead, durably.
//   3. While the leaf has unpersisted changes, an entry that is visible, or dead, may not be
//   durable as it is. A thread whose result depends on such an entry persists it first. (Not needed
//   where what other threads can see is durable.)
//   4. A leaf is closing before the first entry of its block is frozen or closed, and ever after.
//   What becomes of it is decided once. Either all entries are frozen and an SMO replaces it, or
//   its left neighbour absorbs it. A thread that needs the leaf completes that step.
//   5. A Position without a leaf was joined with the one at its left. Where the leaf is cold, the
//   block is as a crash or a close has left it, and so is what follows in the list up to the next
//   position that is known: no thread changes that before the leaf is warm (cold_leaves.h).
//   6. A grace period after a Position was joined, the place of its anchor is free and may become
//   that of another one. So a thread may read the anchor, and `low` of integers, only if under its
//   present guard it has seen a leaf at the position, warm or cold, or one that leads to it.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <type_traits>

#include <perdix/types.h>

#include "index/nbtree/layout.h"
#include "pm/access.h"
#include "pm/probe.h"
#include "util/line.h"

namespace perdix::detail::index::nbtree {

template <class K>
class Leaf;

template <class K>
struct Request;  // top_writer.h

template <class K>
class Position {
 public:
  /// A string's bytes must outlive the position.
  Position(Anchor& anchor, View<K> low, Leaf<K>* leaf_there)
      : leaf(leaf_there), anchor_(reinterpret_cast<std::uintptr_t>(&anchor)) {
    if constexpr (kHasLow) low_ = low;
  }

  std::atomic<Leaf<K>*> leaf;  // null: joined with the one at the left; cold: cold_before()

  Anchor& anchor() const {
    return *reinterpret_cast<Anchor*>(anchor_.load(std::memory_order_relaxed) & kAnchorBits);
  }

  View<K> low() const {
    if constexpr (kHasLow) {
      return low_;
    } else {
      return pm::load(anchor().low);
    }
  }

  /// Four bits that only the top layer's writer sets (top.h: TopChange).
  unsigned top_state() const { return state_of(anchor_.load(std::memory_order_relaxed)); }

  void add_top_state(unsigned bits) { anchor_.fetch_or(bits, std::memory_order_acq_rel); }

  /// Counts a request to the top layer's writer, which does not release the position before the
  /// request is applied. False if the state has all of `gone` already: then there is to be none.
  bool add_pending_request(unsigned gone) {
    auto word = anchor_.load(std::memory_order_acquire);
    do {
      if ((state_of(word) & gone) == gone) return false;
    } while (!anchor_.compare_exchange_weak(word, word + kPending, std::memory_order_acq_rel));
    return true;
  }
  void drop_pending_request() { anchor_.fetch_sub(kPending, std::memory_order_acq_rel); }
  bool has_pending_requests() const {
    return anchor_.load(std::memory_order_acquire) >> kPendingShift != 0;
  }

 private:
  static constexpr bool kHasLow = !std::is_integral_v<K>;  // else it is in PM only
  static constexpr std::uintptr_t kTopBits = alignof(Anchor) - 1;
  // Addresses have 48 bits; fewer than 65,536 threads are at one position at a time.
  static constexpr unsigned kPendingShift = 48;
  static constexpr std::uintptr_t kPending = std::uintptr_t{1} << kPendingShift;
  static constexpr std::uintptr_t kAnchorBits = (kPending - 1) & ~kTopBits;
  struct Nothing {};

  static unsigned state_of(std::uintptr_t word) { return static_cast<unsigned>(word & kTopBits); }

  std::atomic<std::uintptr_t> anchor_;  // its address, the state, and how many requests are pending
  [[no_unique_address]] std::conditional_t<kHasLow, View<K>, Nothing> low_{};
};

/// What a position has in place of its leaf while that is cold: the next position that is known,
/// marked.
template <class K>
Leaf<K>* cold_before(Position<K>* next) {
  return reinterpret_cast<Leaf<K>*>(reinterpret_cast<std::uintptr_t>(next) | 1);
}
template <class K>
bool is_cold(const Leaf<K>* leaf) {
  return (reinterpret_cast<std::uintptr_t>(leaf) & 1) != 0;
}
template <class K>
Position<K>* next_of_cold(const Leaf<K>* leaf) {
  return reinterpret_cast<Position<K>*>(reinterpret_cast<std::uintptr_t>(leaf) &
                                        ~std::uintptr_t{1});
}

/// A structure modification, as the replaced leaf knows it: a leaf takes the place of the old one
/// at its position, and perhaps another one at a new position; perhaps they also absorb the leaf at
/// the right. Constant except for the requests, which belong to the thread that prepared it.
template <class K>
struct Smo {
  Position<K>* next = nullptr;  // of the leaf that is replaced
  Leaf<K>* left = nullptr;
  Position<K>* right = nullptr;  // new, or null
  Leaf<K>* right_leaf = nullptr;
  Position<K>* absorbed = nullptr;  // the position that goes, or null
  Leaf<K>* absorbed_leaf = nullptr;
  std::array<Request<K>*, 3> requests{};  // memory for those of finish(), from the first on
};

/// The metadata of one block. It is followed by a fingerprint for each entry of the block. In the
/// arena a leaf of 80 or 96 bytes lies in two cache lines; the larger one of strings, with 112, in
/// two or three.
template <class K>
class Leaf {
 public:
  /// For memory of bytes(capacity).
  Leaf(Block& block, unsigned capacity, Position<K>* next, View<K> end)
      : block_(reinterpret_cast<std::uintptr_t>(&block) |
               (capacity == kSmallCapacity ? kSmallBit : 0)),
        link_(reinterpret_cast<std::uintptr_t>(next)),
        end_(end) {
    assert(block_ >> kUnpersistedShift == 0);
    for (unsigned i = 0; i <= capacity; ++i) set_fingerprint(i, 0);
  }

  static std::size_t bytes(unsigned capacity) { return sizeof(Leaf) + capacity + 1; }
  std::size_t bytes() const { return bytes(capacity()); }

  Block& block() const {
    return *reinterpret_cast<Block*>(block_.load(std::memory_order_relaxed) & kBlockBits);
  }
  unsigned capacity() const {
    return (block_.load(std::memory_order_relaxed) & kSmallBit) != 0 ? kSmallCapacity : kCapacity;
  }

  /// The position that follows; null: none does.
  Position<K>* next() const {
    const std::uintptr_t link = link_.load(std::memory_order_seq_cst);
    return (link & kReplaced) != 0 ? smo_of(link)->next
                                   : reinterpret_cast<Position<K>*>(link & ~kLinkBits);
  }
  View<K> end() const { return end_; }  ///< low bound of next()
  bool covers(View<K> key) const { return key < end_ || next() == nullptr; }

  /// The modification that replaces it; null if none does.
  Smo<K>* smo() const {
    const std::uintptr_t link = link_.load(std::memory_order_seq_cst);
    return (link & kReplaced) != 0 ? smo_of(link) : nullptr;
  }
  bool to_be_absorbed() const { return (link_.load(std::memory_order_seq_cst) & kAbsorbed) != 0; }

  /// The two ways in which it may end (4): an SMO replaces it, or its left neighbour absorbs it.
  /// Return false if what becomes of it was decided already.
  bool replace_by(Smo<K>& smo) {
    return decide(reinterpret_cast<std::uintptr_t>(&smo) | kReplaced);
  }
  bool mark_to_be_absorbed() { return decide(link_.load(std::memory_order_relaxed) | kAbsorbed); }

  void close() {
    pm::on_step("nbtree: close a leaf");
    visible_.fetch_or(kClosing, std::memory_order_seq_cst);
  }
  bool closing() const { return (visible_.load(std::memory_order_seq_cst) & kClosing) != 0; }

  /// Slots whose entries lookups and scans find (2).
  std::uint64_t visible_slots() const {
    return visible_.load(std::memory_order_acquire) & ~kClosing;
  }
  void show(unsigned slot) {
    pm::on_step("nbtree: show an entry");
    visible_.fetch_or(std::uint64_t{1} << slot, std::memory_order_seq_cst);
  }
  /// Returns how many slots are visible after that.
  unsigned hide(unsigned slot) {
    const std::uint64_t others = ~(std::uint64_t{1} << slot);
    pm::on_step("nbtree: hide an entry");
    const std::uint64_t before = visible_.fetch_and(others, std::memory_order_seq_cst);
    return static_cast<unsigned>(std::popcount(before & others & ~kClosing));
  }

  /// Enclose a change of an entry, from before other threads can see it until it is durable (3).
  void begin_unpersisted() { block_.fetch_add(kUnpersisted, std::memory_order_seq_cst); }
  void end_unpersisted() { block_.fetch_sub(kUnpersisted, std::memory_order_seq_cst); }
  bool has_unpersisted() const {
    return block_.load(std::memory_order_seq_cst) >> kUnpersistedShift != 0;
  }

  /// Slots that were taken for a key with this fingerprint; those that are free if it is 0.
  std::uint64_t taken_for(std::uint8_t fingerprint) const {
    const unsigned slots = capacity();
    const util::Line line = util::load_part_of_line(fingerprints_, slots + 1);
    return util::equal_bytes(line, fingerprint) & ((std::uint64_t{1} << slots) - 1);
  }
  std::uint8_t fingerprint(unsigned slot) const {
    return fingerprints_[slot].load(std::memory_order_relaxed);
  }
  bool is_free(unsigned slot) const { return fingerprint(slot) == 0; }

  /// Takes the first free slot for a key with this fingerprint (1). Returns false if there is none.
  bool take(std::uint8_t fingerprint, unsigned& slot) {
    for (std::uint64_t free = taken_for(0); free != 0; free = taken_for(0)) {
      slot = static_cast<unsigned>(__builtin_ctzll(free));
      std::uint8_t none = 0;
      pm::on_step("nbtree: take a slot");
      if (fingerprints_[slot].compare_exchange_strong(none, fingerprint)) return true;
    }
    return false;
  }

  /// For a leaf that no other thread has seen.
  void set_fingerprint(unsigned slot, std::uint8_t fingerprint) {
    fingerprints_[slot].store(fingerprint, std::memory_order_relaxed);
  }
  void set_visible(std::uint64_t slots, bool closing) {
    visible_.store(slots | (closing ? kClosing : 0), std::memory_order_relaxed);
  }

  void prefetch() const {
    __builtin_prefetch(this);
    __builtin_prefetch(reinterpret_cast<const char*>(this) + bytes(kSmallCapacity) - 1);
  }

 private:
  static constexpr std::uint64_t kClosing = std::uint64_t{1} << 63;  // no block has 64 entries
  static_assert(kCapacity <= 63);

  // Addresses have 48 bits; fewer than 65,536 threads are in one leaf at a time.
  static constexpr unsigned kUnpersistedShift = 48;
  static constexpr std::uint64_t kUnpersisted = std::uint64_t{1} << kUnpersistedShift;
  static constexpr std::uint64_t kSmallBit = 1;
  static constexpr std::uint64_t kBlockBits = (kUnpersisted - 1) & ~kSmallBit;

  static constexpr std::uintptr_t kAbsorbed = 1, kReplaced = 2, kLinkBits = 3;

  static Smo<K>* smo_of(std::uintptr_t link) {
    return reinterpret_cast<Smo<K>*>(link & ~kLinkBits);
  }

  /// Sets the link that says what becomes of the leaf, unless one has been set.
  bool decide(std::uintptr_t link) {
    std::uintptr_t now = link_.load(std::memory_order_seq_cst);
    pm::on_step("nbtree: say what becomes of a leaf");
    return (now & kLinkBits) == 0 &&
           link_.compare_exchange_strong(now, link, std::memory_order_seq_cst);
  }

  std::atomic<std::uint64_t> visible_{0};  // slots, and kClosing
  std::atomic<std::uint64_t> block_;  // address, kSmallBit, and count of maybe unpersisted changes
  std::atomic<std::uintptr_t> link_;  // to the next position, or an SMO that knows it
  View<K> end_;
  std::atomic<std::uint8_t> fingerprints_[];  // 0: free
};

/// A position and the leaf that was there when it was looked at.
template <class K>
struct LeafRef {
  Position<K>* at = nullptr;
  Leaf<K>* leaf = nullptr;

  /// Whether the leaf still is at the position: then what was read of the leaf before this call
  /// counts. A leaf that is not closing is at its position, which then need not be read.
  bool current() const {
    return !leaf->closing() || at->leaf.load(std::memory_order_seq_cst) == leaf;
  }
};

static_assert(sizeof(Position<std::uint64_t>) == 16 && sizeof(Leaf<std::uint64_t>) == 32);

}  // namespace perdix::detail::index::nbtree
