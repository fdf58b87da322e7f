// What SpTree keeps in PM: a root block, a singly linked list of leaves in the order of their keys
// (sptree.txt §4.1, "bottom layer"), a backup of the top layer, and, if it has had write buffers, a
// log (src/wal).
//
// Invariants, which check.cc verifies and recovery relies on. They hold at every crash point once
// the allocator's recyclable log has been resolved (docs/durability/sptree.md):
//   L1. The index's root word is the offset of the root block, and never changes; nor does its
//       `first`, the first leaf, whose low bound is the word 0.
//   L2. `next` links all leaves in strictly ascending order of `low`; the last leaf's is 0.
//   L3. A leaf's keys are >= its `low` and < the `low` of its successor. (The paper's `hkey` is not
//       stored: it always equals the successor's `low`, and a copy would have to change together
//       with `next`, which no 8-byte store can do.)
//   L4. Bit i of `bitmap` says that pairs[i] holds a pair, unless the leaf's chain in the log
//       erases slot i. Slots without a bit may hold anything.
//   L5. No key is in two slots, or in a slot and in the chain.
//   L6. The root block, every leaf, and every blob of a low bound, of a key or of a value is one
//       allocated block, reached in exactly one way. Erased slots reach nothing. The log and the
//       backup have blocks of their own.
//   L7. A chain's owner is its leaf's offset divided by 32. A chain that a crash left behind after
//       its pairs had been merged or had moved to the next leaf is closed before either of the two
//       leaves is used again.
//   L8. The backup (a FAST&FAIR tree) has for keys the low bounds of leaves, and for values their
//       offsets. It lacks three leaves of four, and always the first one, but all that it has are
//       in the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pm/offset.h"

namespace perdix::index::sptree {

inline constexpr unsigned kLeafPairs = 64;
inline constexpr std::uint64_t kLeafAlignment = 32;  ///< of its offset; so no pair straddles a line
inline constexpr std::uint64_t kFullBitmap = ~std::uint64_t{0};
inline constexpr std::uint64_t kLeafMagic = 0x3146'4145'4c50'5350;  // "PSPLEAF1"
inline constexpr std::uint64_t kRootMagic = 0x3154'4f4f'5250'5350;  // "PSPROOT1"

/// Where everything else is found.
struct Root {
  std::uint64_t magic;  ///< kRootMagic, constant
  pm::Offset first;     ///< L1; the commit word of a drop's steps
  pm::Offset log;       ///< of the write buffers; 0 until the index has had one. A commit word
  pm::Offset backup;    ///< L8: the root word of the backup; 0 until it is first opened
};

static_assert(std::is_trivially_copyable_v<Root> && std::has_unique_object_representations_v<Root>);
static_assert(sizeof(Root) == 32 && offsetof(Root, first) == 8 && offsetof(Root, log) == 16);

/// A key and a value, as words (index/common/word.h). Written before its bit in the bitmap, by the
/// holder of the leaf's lock; later only `value` changes, by one 8-byte publish. Never straddles a
/// line.
struct Pair {
  std::uint64_t key;
  std::uint64_t value;
};

/// A leaf node ("Bnode"). All fields but the pairs' slots are written by the holder of the leaf's
/// lock only.
struct Leaf {
  std::uint64_t magic;   ///< kLeafMagic, constant
  std::uint64_t bitmap;  ///< L4; the commit word of insert, erase and, by the allocator's undo and
                         ///< redo, part of merge and split
  pm::Offset next;       ///< L2; the commit word of split and merge
  std::uint64_t low;     ///< low bound as the word of a key; constant
  Pair pairs[kLeafPairs];
};

static_assert(std::is_trivially_copyable_v<Leaf> && std::has_unique_object_representations_v<Leaf>);
static_assert(sizeof(Pair) == 16);
static_assert(kLeafAlignment % sizeof(Pair) == 0 && sizeof(Leaf) % kLeafAlignment == 0);
static_assert(sizeof(Leaf) == 1056);
static_assert(offsetof(Leaf, bitmap) == 8);
static_assert(offsetof(Leaf, next) == 16);
static_assert(offsetof(Leaf, low) == 24);
static_assert(offsetof(Leaf, pairs) == 32);
static_assert(offsetof(Leaf, pairs) <= kLeafAlignment && pm::kLineSize % kLeafAlignment == 0,
              "bitmap and next lie in one line, so that the order of their stores is enough");

}  // namespace perdix::index::sptree
