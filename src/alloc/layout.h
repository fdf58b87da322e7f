// What the allocator keeps in PM, and nothing else. docs/format/allocator.md describes it.
//
// Rules for everything below:
//   1. All fields have a fixed width, all positions are offsets from the start of the pool, and
//      every change that matters is one aligned store of at most 8 bytes.
//   2. All that is read from here is untrusted: it is validated before it is used.
//
// A pool is an array of chunks of 16 MiB. A chunk of spans holds 256 spans of 64 KiB, of which the
// first holds the chunk's header and span table. A span holds blocks of one size class behind a
// bitmap, or belongs to a run of spans that is one object. Larger objects take whole neighbouring
// chunks. Chunk 0 is a chunk of spans whose first 1.3 MiB belong to the pool and to the allocator
// itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "pm/offset.h"

namespace perdix::detail::alloc {

using pm::Offset;

inline constexpr std::uint64_t kSpanSize = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kChunkSize = std::uint64_t{16} << 20;
inline constexpr unsigned kSpansPerChunk = kChunkSize / kSpanSize;

/// The first bytes of the pool belong to the pool itself: superblock and directory. The allocator
/// never touches them.
inline constexpr std::uint64_t kPoolArea = std::uint64_t{1} << 20;

/// Offsets have 48 bits; the upper 16 bits of a word that holds one are free for other uses.
inline constexpr unsigned kOffsetBits = 48;
inline constexpr Offset kOffsetMask = (Offset{1} << kOffsetBits) - 1;

/// Threads that can allocate or free at the same moment; others wait for a lane.
inline constexpr unsigned kLanes = 64;

// --- Recyclable log ------------------------------------------------------------------------------

/// Blocks that one operation can reserve, and as many that it can free.
inline constexpr unsigned kMaxBlocks = 4;

/// Words of a record:
///   0     checksum of words 1 to the last; 0: no record. Written last, cleared first.
///   1     offset of the commit word (0: the record itself is the commit) | shape << 48
///   2, 3  mask and expected: the operation is committed if (commit word & mask) == expected
///   4...  reserved blocks, then freed blocks: offset | units << 48, where units are the spans or
///         chunks of a large object, 0 for a small block; then {offset, value} of the redo store,
///         then of the undo store
/// Shape: bits 0-2 reserved blocks, 3-5 freed blocks, 6 has a redo store, 7 has an undo store.
/// A record needs no number that tells it from earlier ones: when it is written, the durable
/// content of its first word is 0, so only a record that is complete can pass.
inline constexpr unsigned kRecordHeaderWords = 4;
inline constexpr unsigned kRecordWords = kRecordHeaderWords + 2 * kMaxBlocks + 2 * 2;
static_assert(kRecordWords * 8 == 2 * pm::kLineSize, "four blocks fit the first line");

// --- Lanes ---------------------------------------------------------------------------------------

/// Written only by the thread that holds the lane. One page, so that in the page_cache domain one
/// sync covers all of it.
struct LaneLayout {
  static constexpr unsigned kSlots = 496;

  std::array<std::uint64_t, kRecordWords> record;
  /// The reclaimed ring: offsets of free blocks whose bit in the bitmap is still set. 0: unused
  /// slot. A block is in at most one slot of all lanes.
  std::array<std::uint64_t, kSlots> ring;
};
static_assert(offsetof(LaneLayout, ring) == 128 && sizeof(LaneLayout) == 4096);

// --- Chunks --------------------------------------------------------------------------------------

enum class ChunkKind : std::uint8_t {
  free = 1,   ///< `count` unused chunks; only their header is valid
  spans = 2,  ///< one chunk of spans
  large = 3,  ///< `count` chunks that hold one object, from the byte after the header line on
};

/// The first word of a chunk, unless it is a later part of `free` or `large` chunks. One store
/// changes all of it. magic (16 bits) | kind << 16 (8 bits) | node << 24 (8 bits) | count << 32.
struct ChunkWord {
  ChunkKind kind = ChunkKind::free;
  std::uint8_t node = 0;    ///< NUMA node of the thread that asked for the chunk
  std::uint32_t count = 1;  ///< chunks; 1 for spans

  static constexpr std::uint64_t kMagic = 0xca11;

  constexpr std::uint64_t pack() const noexcept {
    return kMagic | std::uint64_t{static_cast<std::uint8_t>(kind)} << 16 |
           std::uint64_t{node} << 24 | std::uint64_t{count} << 32;
  }
  static constexpr ChunkWord unpack(std::uint64_t word) noexcept {
    return {static_cast<ChunkKind>(word >> 16 & 0xff), static_cast<std::uint8_t>(word >> 24 & 0xff),
            static_cast<std::uint32_t>(word >> 32)};
  }
  /// Whether `word` is one that pack() gives; `count` is not bounded by that.
  static constexpr bool valid(std::uint64_t word) noexcept {
    const ChunkWord chunk = unpack(word);
    return (word & 0xffff) == kMagic && chunk.count > 0 && chunk.kind >= ChunkKind::free &&
           chunk.kind <= ChunkKind::large && (chunk.kind != ChunkKind::spans || chunk.count == 1);
  }
};

static_assert(sizeof(ChunkKind) == 1 && sizeof(ChunkWord) == 8);

/// An entry of a span table.
///   0                free, or a later part of a run
///   class + 1        span of blocks of that size class
///   0x8000 | n       first span of an allocated run of n spans
using SpanEntry = std::uint16_t;
inline constexpr SpanEntry kFreeSpan = 0;
inline constexpr SpanEntry kRunFlag = 0x8000;

struct ChunkLayout {
  std::uint64_t word;  ///< ChunkWord
  std::array<std::uint64_t, 7> reserved;
  std::array<SpanEntry, kSpansPerChunk> spans;  ///< valid in a chunk of spans only
};
static_assert(offsetof(ChunkLayout, spans) == pm::kLineSize && sizeof(ChunkLayout) == 576);

/// A large object begins behind the header line of its first chunk.
inline constexpr std::uint64_t kLargeHeader = pm::kLineSize;

// --- Spans ---------------------------------------------------------------------------------------

/// The first word of a span of blocks: magic (16 bits) | entry of the span table << 16 | number of
/// blocks << 32. Behind it lies the bitmap, bit i of word i / 64 for block i; bits past the last
/// block are 0. Then, from a line on, the blocks.
inline constexpr std::uint64_t kSpanMagic = 0x5ba9;

struct SpanLayout {
  std::uint64_t word;
  std::array<std::uint64_t, 64>
      bitmap;  ///< as many words as the class needs; the blocks may begin within
};
static_assert(offsetof(SpanLayout, bitmap) == 8 && sizeof(SpanLayout) == 520);

// --- Header --------------------------------------------------------------------------------------

/// The allocator's own page, behind the pool's area.
struct HeaderLayout {
  static constexpr std::uint64_t kMagic = 0x31636f6c6c614370;  // "pCalloc1"

  // Written once, by format().
  std::uint64_t magic;
  std::uint32_t chunk_size;
  std::uint32_t span_size;
  std::uint32_t lanes;
  std::uint32_t ring_slots;
  std::uint32_t size_classes;
  std::uint32_t zero;
  std::uint64_t checksum;  ///< of the fields above
  std::array<std::uint64_t, 3> reserved0;

  std::uint64_t alloc_num;  ///< chunks that have a header, from chunk 0 on; the space behind them
                            ///< was never used
  std::array<std::uint64_t, 7> reserved1;

  ChunkLayout chunk0;  ///< header and span table of chunk 0
};
static_assert(offsetof(HeaderLayout, checksum) == 32 && offsetof(HeaderLayout, alloc_num) == 64);
static_assert(offsetof(HeaderLayout, chunk0) == 128 && sizeof(HeaderLayout) == 704);

inline constexpr Offset kHeaderOffset = kPoolArea;
inline constexpr Offset kLanesOffset = kHeaderOffset + 4096;
inline constexpr Offset kLanesEnd = kLanesOffset + kLanes * sizeof(LaneLayout);
static_assert(sizeof(HeaderLayout) <= 4096);

/// The first span of a chunk that can be allocated.
constexpr unsigned first_span(std::uint64_t chunk) noexcept {
  return chunk == 0 ? static_cast<unsigned>((kLanesEnd + kSpanSize - 1) / kSpanSize) : 1;
}

/// Where a chunk's header and span table lie.
constexpr Offset chunk_header_offset(std::uint64_t chunk) noexcept {
  return chunk == 0 ? kHeaderOffset + offsetof(HeaderLayout, chunk0) : chunk * kChunkSize;
}

/// Largest runs and objects.
inline constexpr unsigned kMaxRun = kSpansPerChunk - 1;
inline constexpr std::uint64_t kMaxChunks = 257;
inline constexpr std::uint64_t kMaxObject = kMaxChunks * kChunkSize - kLargeHeader;

}  // namespace perdix::detail::alloc
