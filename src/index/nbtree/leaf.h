// The DRAM side of a leaf (nbtree.txt III-A, the "metadata layer"), and its place in the tree.
//
// A Position stands for one anchor: it stays while the leaf at it is replaced. A Leaf stands for
// one block; all of it that changes is atomic, and it is written by any thread. Leaves, positions
// and SMOs that are out of reach are released when no epoch::Guard can hold them.
//
// Invariants:
//   1. A slot is taken by changing its fingerprint from 0, the first such slot first. So when a
//   slot is taken, all before it have been.
//   2. A slot's bit in `visible` is set after its entry is durable and live. It may be cleared when
//   its death is durable.
//   3. While `doubts` is not 0, an entry that is visible, or dead, may not be durable as it is. Who
//   goes by what it says persists it first. (Not needed where visible is durable.)
//   4. `closing` is set before the first entry of the block is frozen or closed, and never reset.
//   `smo` is set once: either when all are frozen, to how the leaf is replaced; or to the tree's
//   mark for leaves that their left neighbour shall absorb. Whoever needs the leaf completes that.
//   5. A Position whose `leaf` is null was joined with the one at its left. Where `leaf` is the
//   tree's mark for cold leaves, the block is as a crash or a close has left it, and so are the
//   positions around it: nobody changes them before the leaf is warm (resume.cc).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include <perdix/types.h>

#include "index/nbtree/layout.h"
#include "util/line.h"

namespace perdix::index::nbtree {

template <class K>
struct Leaf;

template <class K>
struct Position {
  std::atomic<Leaf<K>*> leaf{nullptr};
  Anchor* anchor = nullptr;
  View<K> low{};             // of a string: bytes in the arena
  Position* next = nullptr;  // while the leaf is cold: the position that follows

  // What the top layer shall do with it (top.h).
  std::atomic<std::uint8_t> wishes{0};
  std::uint8_t done = 0;
  Position* next_wish = nullptr;
};

/// How a leaf is replaced: by one leaf at the same position, or by that and one at a new position.
/// It may take the leaf at its right along. Constant.
template <class K>
struct Smo {
  Leaf<K>* left = nullptr;
  Position<K>* right = nullptr;  // new, or null
  Leaf<K>* right_leaf = nullptr;
  Position<K>* absorbed = nullptr;  // the position that goes, or null
  Leaf<K>* absorbed_leaf = nullptr;
};

template <class K>
struct alignas(64) Leaf {
  static constexpr unsigned kSlots = 64;

  std::array<std::atomic<std::uint8_t>, kSlots> fingerprints{};  // 0: free
  std::atomic<std::uint64_t> visible{0};
  Block* block = nullptr;
  Position<K>* next = nullptr;  // null: the last leaf
  View<K> end{};                // low bound of `next`
  std::atomic<Smo<K>*> smo{nullptr};
  std::atomic<std::uint32_t> doubts{0};
  std::atomic<bool> closing{false};
  std::uint8_t capacity = 0;

  bool covers(View<K> key) const { return next == nullptr || key < end; }

  std::uint64_t all_slots() const { return (std::uint64_t{1} << capacity) - 1; }

  /// Slots that were taken for a key with this fingerprint.
  std::uint64_t taken_for(std::uint8_t fingerprint) const {
    return util::equal_bytes(util::load_line(fingerprints.data()), fingerprint) & all_slots();
  }

  std::uint64_t visible_slots() const { return visible.load(std::memory_order_acquire); }

  void show(unsigned slot) {
    visible.fetch_or(std::uint64_t{1} << slot, std::memory_order_seq_cst);
  }
  void hide(unsigned slot) {
    visible.fetch_and(~(std::uint64_t{1} << slot), std::memory_order_seq_cst);
  }

  /// Takes the first free slot. False if there is none.
  bool take(std::uint8_t fingerprint, unsigned& slot) {
    for (std::uint64_t free = taken_for(0); free != 0; free = taken_for(0)) {
      slot = static_cast<unsigned>(__builtin_ctzll(free));
      std::uint8_t none = 0;
      if (fingerprints[slot].compare_exchange_strong(none, fingerprint)) return true;
    }
    return false;
  }
};

static_assert(kCapacity < Leaf<std::uint64_t>::kSlots);

/// A key's fingerprint: never 0.
inline std::uint8_t fingerprint_of(std::uint16_t hash) {
  return static_cast<std::uint8_t>(hash % 255 + 1);
}

}  // namespace perdix::index::nbtree
