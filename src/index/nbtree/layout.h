// What NbTree keeps in PM: a root block with a ledger, a list of anchors in the order of their
// keys, and for each anchor one block of key-value entries (NBTree (docs/papers.md), section
// III-A, the "key-value layer").
//
// Invariants, which check.h verifies and recovery relies on. They hold at every crash point
// (docs/durability/nbtree.md):
//   N1. The index's root word is the offset of the root block, and never changes. Its `first` is
//   the offset of the first anchor, whose low bound is the word 0; or 0, if a crash came before the
//   first leaves were there.
//   N2. An anchor leads to its block, and the block's `next` to the next anchor, in strictly
//   ascending order of `low`; the last block's is 0. So a block is replaced, split and joined with
//   its neighbour by one store: that of its anchor's `block`.
//   N3. A block's keys are >= the `low` of its anchor and < that of the next one. A leaf of u64
//   keys never crosses a quarter of their range (entry.h says why): an anchor in the root begins at
//   each, and stays.
//   N4. An entry counts if the state in its key word is not `special`. Of entries with the same key
//   the first one counts; the others are inserts that lost.
//   N5. What an entry, an anchor or a block refers to is durable before the store that makes it
//   count. `meta`, `next` and `low` never change.
//   N6. Root, pages, blocks, blobs of low bounds and of the keys and values that count are one
//   allocated block each, reached in exactly one way.
//   N7. Each other allocated block of the index is named in the ledger: it was about to be linked,
//   or has been unlinked, when the pool was left. Opening frees these, or sees to it.
//   N8. An anchor is in the root or in a page of anchors, where a place with `block` 0 is free. One
//   that is not free is in the list, or named in the ledger (with kAnchorTag).
//   N9. `signposts` is the root word of a FAST&FAIR tree, or 0. The tree leads from low bounds to
//   places of anchors, of which it has some. What it says may be out of date (signposts.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pm/access.h"
#include "pm/offset.h"
#include "pool/checked.h"

namespace perdix::detail::index::nbtree {

inline constexpr std::uint64_t kRootMagic = 0x3154'4f4f'5242'4e50;  // "PNBROOT1"

/// Entries of a block. After a split there is a small one, which is replaced once by one of full
/// capacity before that is split: so blocks are fuller on average (docs/format/nbtree.md).
inline constexpr unsigned kSmallCapacity = 47;
inline constexpr unsigned kCapacity = 63;

/// A key and a value, as words (index/common/codec.h), the key's with a state (entry.h). Aligned so
/// that it never straddles a line: the value is stored first, so the order of stores to one line is
/// enough.
struct alignas(16) Entry {
  std::uint64_t key;    ///< changed by compare-and-swap only; see entry.h
  std::uint64_t value;  ///< by the inserter; then by compare-and-swap of the whole entry
};

/// A block's first word: capacity (8 bits) | magic << 8. Constant.
struct Meta {
  unsigned capacity = 0;

  static constexpr std::uint64_t kMagic = 0x31'4b4c'4254'424e;  // "NBTBLK1"

  constexpr std::uint64_t pack() const noexcept { return kMagic << 8 | capacity; }
  static constexpr Meta unpack(std::uint64_t word) noexcept {
    return {static_cast<unsigned>(word & 0xff)};
  }
  static constexpr bool valid(std::uint64_t word) noexcept {
    const unsigned capacity = unpack(word).capacity;
    return word >> 8 == kMagic && (capacity == kSmallCapacity || capacity == kCapacity);
  }
};

/// A key-value block, with `capacity` entries behind it.
struct Block {
  std::uint64_t meta;
  pm::Offset next;  ///< N2: the next anchor; constant
  Entry entries[];
};

constexpr std::size_t block_bytes(unsigned capacity) {
  return sizeof(Block) + capacity * sizeof(Entry);
}

/// The place of a leaf in the list. It stays while blocks come and go.
struct alignas(16) Anchor {
  pm::Offset block;   ///< the commit word of structure modifications; 0: the place is free
  std::uint64_t low;  ///< low bound as the word of a key; constant while `block` is not 0
};

/// What one thread at a time has in the ledger (ledger.h). `claims` are blocks that it is about to
/// link; they count if the first one is not 0, which is stored last. `retired` are blocks that it
/// is about to unlink, or that were unlinked and wait for their readers; each that is not 0 counts.
struct alignas(64) Stripe {
  std::array<pm::Offset, 4> claims;
  pm::Offset pages;    ///< the first page, with more words like `retired`; 0: none
  pm::Offset anchors;  ///< the first page of anchors; 0: none
  std::array<pm::Offset, 2> retired;
};

struct Page {
  static constexpr std::uint64_t kMagic = 0x3145'4741'5042'4e50;  // "PNBPAGE1"
  std::uint64_t magic;
  pm::Offset next;  ///< of the stripe; constant
  std::array<pm::Offset, 62> retired;
};

/// Anchors side by side.
struct AnchorPage {
  static constexpr std::uint64_t kMagic = 0x3143'4e41'5042'4e50;  // "PNBPANC1"
  std::uint64_t magic;
  pm::Offset next;  ///< of the stripe; constant
  std::array<Anchor, 63> anchors;
};

/// In a word of the ledger: it names an anchor, whose place becomes free instead of a block.
inline constexpr pm::Offset kAnchorTag = 1;

/// As first claim: it names nothing, but the others count.
inline constexpr pm::Offset kNoBlock = 2;

/// The first half is for operations, which name blobs of keys and values; the second half for
/// structure modifications, which name all else.
inline constexpr unsigned kStripes = 64;
inline constexpr unsigned kOperationStripes = kStripes / 2;
inline constexpr unsigned kMaxRegions = 4;

/// Where everything else is found.
struct Root {
  std::uint64_t magic;   ///< kRootMagic, constant
  pm::Offset first;      ///< N1; the commit word of a drop's steps
  pm::Offset signposts;  ///< N9; 0 until the tree is first opened
  std::array<std::uint64_t, 5> reserved;
  std::array<Anchor, kMaxRegions> anchors;  ///< the first anchor of each region of keys
  std::array<Stripe, kStripes> stripes;
};

static_assert(sizeof(Meta) == 4, "unpacked, in DRAM");
static_assert(sizeof(Entry) == 16 && offsetof(Entry, value) == 8);
static_assert(sizeof(Block) == 16 && offsetof(Block, entries) == 16 && offsetof(Block, next) == 8);
static_assert(block_bytes(kCapacity) == 1024 && block_bytes(kSmallCapacity) == 768);
static_assert(sizeof(Anchor) == 16 && offsetof(Anchor, low) == 8);
static_assert(sizeof(Stripe) == 64 && offsetof(Stripe, pages) == 32);
static_assert(offsetof(Stripe, anchors) == 40 && offsetof(Stripe, retired) == 48);
static_assert(sizeof(Page) == 512 && offsetof(Page, retired) == 16);
static_assert(sizeof(AnchorPage) == 1024 && offsetof(AnchorPage, anchors) == 16);
static_assert(sizeof(Root) == 128 + kStripes * sizeof(Stripe) && offsetof(Root, stripes) == 128);
static_assert(offsetof(Root, signposts) == 16 && offsetof(Root, anchors) == 64);
static_assert(std::has_unique_object_representations_v<Root> &&
              std::has_unique_object_representations_v<Entry> &&
              std::has_unique_object_representations_v<Anchor> &&
              std::has_unique_object_representations_v<Page> &&
              std::has_unique_object_representations_v<AnchorPage>);

// Roots, anchors and blocks at offsets that were read from PM, which is not trusted.

inline Root& checked_root(const pool::PoolCore& pool, pm::Offset offset) {
  return pool::checked_by_magic<Root>(pool, offset, "its root", kRootMagic);
}

inline Anchor& checked_anchor(const pool::PoolCore& pool, pm::Offset offset) {
  return pool::checked<Anchor>(pool, offset, "an anchor", [](const Anchor&) { return true; });
}

inline Block& checked_block(const pool::PoolCore& pool, const Anchor& anchor) {
  const pm::Offset offset = pm::load(anchor.block);
  return pool::checked<Block>(pool, offset, "a block", [&](const Block& block) {
    const std::uint64_t meta = pm::load(block.meta);
    return Meta::valid(meta) && pool.contains(offset, block_bytes(Meta::unpack(meta).capacity));
  });
}

inline unsigned capacity_of(const Block& block) {
  return Meta::unpack(pm::load(block.meta)).capacity;
}

}  // namespace perdix::detail::index::nbtree
