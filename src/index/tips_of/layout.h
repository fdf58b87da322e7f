// What TipsOf keeps in PM besides the container itself.
//
// Invariants, which recovery relies on (docs/durability/tips_of.md has the cases):
//   O1. The root word is the offset of the Header. All of it lies at the address at which it was
//       made: the pool's address is fixed.
//   O2. The extents form a chain that begins at `first`. Each is an allocated block, and its pages
//       are whole pages of memory that hold nothing else of the pool.
//   O3. A page's record counts if its checksum is right for `epoch` and for the page. Then the
//       page's copy is what the page held when the epoch began. A page without such a record has
//       not changed since.
//   O4. The first page begins with the Arena, behind which the container lies. The rest of what the
//       arena has cut off the pages are blocks of the container and free blocks. The arena is
//       zeroed before the first extent is linked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pm/offset.h"

namespace perdix::detail::index::tips_of {

inline constexpr std::uint64_t kHeaderMagic = 0x31'464f'5350'4954;  // "TIPSOF1"

/// Memory is protected in pages of this size, also where the processor's are smaller.
inline constexpr std::uint64_t kPage = 4096;

/// Written at creation, but for `first` and the second line.
struct Header {
  std::uint64_t magic;
  std::uint64_t nonce;  // random; in the checksum of each record
  std::uint64_t base;   // address of the pool
  pm::Offset first;     // extent; 0 while the index is being destroyed
  std::uint64_t type;   // fingerprint of the container's type
  std::uint64_t bytes;  // of the container's object
  std::array<std::uint64_t, 2> reserved0;
  std::uint64_t epoch;  // of the records that count; from 1; published
  std::array<std::uint64_t, 7> reserved1;
  std::array<char, 128> name;  // of the container's type, cut off; zeros behind it
};
static_assert(sizeof(Header) == 256 && std::has_unique_object_representations_v<Header>);
static_assert(offsetof(Header, epoch) == 64 && offsetof(Header, name) == 128);

/// Says that a page has a copy.
struct PageRecord {
  std::uint64_t check;  // of the copy, the nonce, the epoch and the page's address
  std::uint64_t epoch;
};
static_assert(sizeof(PageRecord) == 16 && std::has_unique_object_representations_v<PageRecord>);

/// Begins the block of an extent. Behind it a PageRecord for each page, then, from a multiple of
/// kPage on, a copy of each page, then the pages.
struct Extent {
  pm::Offset next;  // 0: none; with the commit of the next one's allocation
  std::uint64_t pages;
};
static_assert(sizeof(Extent) == 16 && std::has_unique_object_representations_v<Extent>);

/// Sizes of blocks: 32 multiples of 16, then four for each power of two.
inline constexpr unsigned kSmallClasses = 32;
inline constexpr unsigned kClasses = kSmallClasses + 4 * 30;

/// Where the container's memory comes from. It lies in a protected page as the container does, so
/// that both change together.
struct Arena {
  std::uint64_t constructed;  // 1: the container is there
  std::uint64_t sample;       // hash of a key, as the container's hash function made it
  std::uint64_t extent;       // number of the extent that memory is cut off
  std::uint64_t cut;          // bytes of its pages that are cut off
  std::uint64_t live_blocks;
  std::uint64_t live_bytes;               // of their classes
  std::array<pm::Offset, kClasses> free;  // first free block of each class, 0: none
};
static_assert(sizeof(Arena) == 1264 && std::has_unique_object_representations_v<Arena>);

/// Begins a block that is free.
struct FreeBlock {
  pm::Offset next;  // of its class; 0: none
  std::uint64_t reserved;
};
static_assert(sizeof(FreeBlock) == 16 && std::has_unique_object_representations_v<FreeBlock>);

/// Where the container's object begins in the first page.
inline constexpr std::uint64_t kObjectAt = 1280;
static_assert(kObjectAt >= sizeof(Arena) && kObjectAt % pm::kLineSize == 0);

}  // namespace perdix::detail::index::tips_of
