// What SpTree keeps in PM: a root block, a singly linked list of leaves in the order of their keys
// (sptree paper, §4.1, "bottom layer"), a backup of the top layer, and, if it has had write
// buffers, a log (src/wal).
//
// Invariants, which check.cc verifies and recovery relies on. They hold at every crash point once
// the allocator's recyclable log has been resolved (docs/durability/sptree.md):
//   L1. The index's root word is the offset of the root block, and never changes; nor does its
//       `first`, the first leaf, whose low bound is the word 0.
//   L2. `link` leads through all leaves in strictly ascending order of `low`; the last leaf's leads
//       nowhere.
//   L3. A leaf's keys are >= its `low` and < the `low` of its successor. (The paper's `hkey` is not
//       stored: it always equals the successor's `low`, and a copy would have to change together
//       with `link`, which no 8-byte store can do.)
//   L4. Of the two bitmaps, the one that `link` selects says which slots hold a pair (slots.h: the
//       slot's place in `pairs`), unless the leaf's chain in the log erases it. Slots without a
//       bit, and the other bitmap, may hold anything.
//   L5. No key is in two slots, or in a slot and in the chain.
//   L6. The root block, every leaf, and every blob of a low bound, of a key or of a value is one
//       allocated block, reached in exactly one way. Erased slots reach nothing. The log and the
//       backup have further blocks.
//   L7. A chain's owner is its leaf's offset divided by 2048. A chain that a crash left behind
//       after its pairs had been merged or had moved to the next leaf is closed before either of
//       the two leaves is used again.
//   L8. The backup (a FAST&FAIR tree) has for keys the low bounds of leaves, and for values their
//       offsets. It lacks three leaves of four, and always the first one, but all that it has are
//       in the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "index/sptree/slots.h"
#include "pm/offset.h"

namespace perdix::detail::index::sptree {

inline constexpr std::uint64_t kLeafAlignment = pm::kLineSize;      ///< of its offset
inline constexpr std::uint64_t kLeafMagic = 0x3246'4145'4c50'5350;  // "PSPLEAF2"
inline constexpr std::uint64_t kRootMagic = 0x3254'4f4f'5250'5350;  // "PSPROOT2"

/// Where everything else is found.
struct Root {
  std::uint64_t magic;  ///< kRootMagic, constant
  pm::Offset first;     ///< L1; the commit word of a drop's steps
  pm::Offset log;       ///< of the write buffers; 0 until the index has had one. A commit word
  pm::Offset backup;    ///< L8: the root word of the backup; 0 until it is first opened
};

static_assert(std::is_trivially_copyable_v<Root> && std::has_unique_object_representations_v<Root>);
static_assert(sizeof(Root) == 32 && offsetof(Root, first) == 8 && offsetof(Root, log) == 16);

/// A key and a value, as words (index/common/codec.h). Written before its bit in the bitmap, by the
/// holder of the leaf's lock; later only `value` changes, by one 8-byte publish. Never straddles a
/// line.
struct Pair {
  std::uint64_t key;
  std::uint64_t value;
};

/// A leaf node ("Bnode"): a line with the bitmaps and the link, then the pairs. All fields but the
/// pairs' slots are written by the holder of the leaf's lock only.
///
/// Changes of several slots, and of slots and successor, are written to the bitmap that does not
/// count, and commit by the store of `link` that selects it. All words of a commit lie in one line,
/// so that the order of their stores is enough.
struct Leaf {
  using Bitmap = std::uint64_t[SlotSet::kWords];

  std::uint64_t magic;     ///< kLeafMagic, constant
  std::uint64_t link;      ///< L2, L4: offset of the successor, 0: none; in bit 0 the number of the
                           ///< bitmap that counts. The commit word of split, merge and batches
  std::uint64_t low;       ///< low bound as the word of a key; constant
  std::uint64_t reserved;  ///< 0
  Bitmap bitmaps[2];       ///< L4; a word of the one that counts commits an insert or an erase
  Pair pairs[kLeafPairs];
};

inline constexpr std::uint64_t kSelector = 1;  ///< in Leaf::link

static_assert(std::is_trivially_copyable_v<Leaf> && std::has_unique_object_representations_v<Leaf>);
static_assert(sizeof(Pair) == 16);
static_assert(sizeof(Leaf) == 2112 && sizeof(Leaf) % kLeafAlignment == 0);
static_assert(offsetof(Leaf, link) == 8);
static_assert(offsetof(Leaf, low) == 16);
static_assert(offsetof(Leaf, bitmaps) == 32);
static_assert(offsetof(Leaf, pairs) == pm::kLineSize);

}  // namespace perdix::detail::index::sptree
