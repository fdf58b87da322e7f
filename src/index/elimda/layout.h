// What ElimDa keeps in PM: collecting logs, a backup log, and a table of extendible hashing (ElimDa
// paper, 3.2). How it is written: docs/durability/elimda.md.
//
// Invariants, which check.h verifies and recovery relies on. They hold at every crash point:
//   E1. The index's root word is the offset of the root block. Its shape never changes, nor does
//       the seed of its hashes. `log_area` says how many logs there are, if their number grows.
//   E2. The directory has 2^depth entries, of which only *leaders* count: entry 0, and behind a
//       leader of depth d the entry 2^(depth - d) further on. A leader names the segment of all
//       hashes that begin with its number's first d bits. So one store of a leader splits a
//       segment.
//   E3. A pair of a segment counts if its live bit is set. It lies in the bucket that its hash
//       says. Pairs of one key are in the order in which they came. Slots behind the last live bit
//       are free.
//   E4. A pair of a backup unit counts if its bit in the unit's word is set. Units of one log
//       are in the order of their numbers. A unit without such bits is free. Where the number of
//       logs grows, units of fewer logs are older than those of more logs. A unit lies in a region
//       that has all hashes of its pairs, and of its log.
//   E5. A pair of a collecting log counts if it is below the log's count and not marked dead. A
//       log whose number a unit of the same log has was copied to that unit, and counts as
//       empty; the log says that it is being copied then.
//   E6. Of all pairs of a key the first one counts, in the order: segment, backup log,
//       collecting log. The others have no effect and are removed with it at the latest.
//   E7. A pair may count in two places: a crash came between its copy and the removal. The two
//       have the same words, and the strings belong to the first.
//   E8. Root, directory, segments, chunks, log area, and the strings of pairs that count are
//       one allocated block each, reached in one way but for E7.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pm/access.h"
#include "pm/offset.h"

namespace perdix::detail::index::elimda {

inline constexpr unsigned kOffsetBits = 48;
inline constexpr pm::Offset kOffsetMask = (pm::Offset{1} << kOffsetBits) - 1;

/// A key and a value, as words (index/common/codec.h). Never straddles a line.
struct alignas(16) Pair {
  std::uint64_t key;
  std::uint64_t value;
};

/// Reads a pair of which other threads may change the value.
inline Pair load(const Pair& pair) { return {pm::load(pair.key), pm::load(pair.value)}; }

/// Where everything else is found. All but `directory`, `log_area` and `chunks` is constant.
struct Root {
  static constexpr std::uint64_t kMagic = 0x3454'4f4f'5241'4445;         // "EDAROOT4"
  static constexpr std::uint64_t kGrowingMagic = 0x3554'4f4f'5241'4445;  // "EDAROOT5"
  // Of earlier releases, whose logs did not say that they were being copied. Opening makes the
  // first two to those above.
  static constexpr std::uint64_t kSilentMagic = 0x3254'4f4f'5241'4445;         // "EDAROOT2"
  static constexpr std::uint64_t kSilentGrowingMagic = 0x3354'4f4f'5241'4445;  // "EDAROOT3"
  static constexpr std::uint64_t kUnseededMagic = 0x3154'4f4f'5241'4445;       // "EDAROOT1"

  std::uint64_t magic;
  std::uint32_t logs;             ///< collecting logs, a power of two; kGrowingMagic: the most
  std::uint32_t unit_pairs;       ///< pairs of a media unit, a collecting log and a backup unit
  std::uint32_t d_pairs;          ///< pairs of a D-bucket, a multiple of unit_pairs
  std::uint32_t p_pairs;          ///< pairs of a P-bucket, a multiple of d_pairs
  std::uint32_t segment_buckets;  ///< P-buckets of a segment
  std::uint32_t zero;
  std::uint64_t directory;  ///< a Reference; the commit word of doubling
  std::uint64_t log_area;   ///< 0: none yet; an offset; kGrowingMagic: a Reference, 2^depth logs
  std::uint64_t chunks;     ///< a Reference: the table of lists of chunks; depth 0: the one list
  std::uint64_t seed;       ///< of hashes; 0 if the magic number is that of a root without one
};

/// Offset of a directory, a segment or the logs, and their depth. One store changes both.
/// offset | depth << 48.
struct Reference {
  pm::Offset offset = pm::kNull;
  unsigned depth = 0;

  constexpr std::uint64_t pack() const noexcept {
    return offset | std::uint64_t{depth} << kOffsetBits;
  }
  static constexpr Reference unpack(std::uint64_t word) noexcept {
    return {word & kOffsetMask, static_cast<unsigned>(word >> kOffsetBits)};
  }
};

/// Head of a segment. Behind it lie the live bits, p_pairs/64 words (at least one) for each bucket,
/// and from a media unit on the pairs of the buckets. Live bits are set and cleared by the holder
/// of the bucket's lock; a pair is durable before its bit is set, and is not written again.
struct SegmentHead {
  static constexpr std::uint64_t kMagic = 0x3147'4553'4144'4521;  // "!EDASEG1"

  std::uint64_t magic;
  std::uint64_t depth;   ///< when it was made: its leader has less if it was joined since
  std::uint64_t prefix;  ///< the first `depth` bits of its hashes then
  std::uint64_t reserved[5];
};

/// Head of a chunk of the backup log. Behind it lie the words of its units, one for each sixteen
/// pairs, and from a media unit on the pairs.
struct ChunkHead {
  static constexpr std::uint64_t kMagic = 0x314b'4e43'4144'4521;  // "!EDACNK1"

  std::uint64_t magic;
  pm::Offset next;  ///< the chunk before; the commit word when that is freed
  std::uint64_t units;
  std::uint64_t reserved[5];
};

/// A word of a backup unit. valid (16 bits) | log << 16 (16 bits) | number << 32. Bits of `valid`
/// are changed by compare-and-swap, the others only while none is set.
struct UnitWord {
  static constexpr unsigned kPairs = 16;
  static constexpr std::uint16_t kNoLog = 0xffff;  ///< pairs of many logs, no two of one key

  std::uint16_t valid = 0;
  std::uint16_t log = 0;     ///< Shape::log_name()
  std::uint32_t number = 0;  ///< of the log, when it was copied

  constexpr std::uint64_t pack() const noexcept {
    return valid | std::uint64_t{log} << 16 | std::uint64_t{number} << 32;
  }
  static constexpr UnitWord unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint16_t>(word), static_cast<std::uint16_t>(word >> 16),
            static_cast<std::uint32_t>(word >> 32)};
  }

  /// What tells the uses of a unit apart: log and number.
  static constexpr std::uint64_t copy(std::uint64_t word) noexcept { return word >> 16; }
  static constexpr std::uint64_t copy_of(std::uint32_t log, std::uint32_t number) noexcept {
    return log | std::uint64_t{number} << 16;
  }
};

/// The first word of a collecting log's head; words of dead bits follow. Changed by the holder of
/// the log's lock. count (16 bits) | number << 16 | copying << 48. The number grows by one with
/// each copy.
struct LogWord {
  std::uint16_t count = 0;
  std::uint32_t number = 0;
  bool copying = false;  ///< a unit may have the pairs

  constexpr std::uint64_t pack() const noexcept {
    return count | std::uint64_t{number} << 16 | std::uint64_t{copying} << 48;
  }
  static constexpr LogWord unpack(std::uint64_t word) noexcept {
    return {static_cast<std::uint16_t>(word), static_cast<std::uint32_t>(word >> 16),
            (word >> 48 & 1) != 0};
  }
};

inline constexpr std::uint64_t kChunkBytes = std::uint64_t{64} << 10;

static_assert(sizeof(Reference) == 16, "unpacked, in DRAM");
static_assert(sizeof(Pair) == 16 && offsetof(Pair, value) == 8);
static_assert(sizeof(Root) == 64 && offsetof(Root, logs) == 8 && offsetof(Root, directory) == 32);
static_assert(offsetof(Root, log_area) == 40 && offsetof(Root, chunks) == 48);
static_assert(sizeof(SegmentHead) == 64 && sizeof(ChunkHead) == 64);
static_assert(offsetof(SegmentHead, depth) == 8 && offsetof(SegmentHead, prefix) == 16);
static_assert(offsetof(ChunkHead, next) == 8 && offsetof(ChunkHead, units) == 16);
static_assert(sizeof(UnitWord) == 8 && sizeof(LogWord) == 12, "unpacked, in DRAM");
static_assert(std::has_unique_object_representations_v<Root> &&
              std::has_unique_object_representations_v<Pair> &&
              std::has_unique_object_representations_v<SegmentHead> &&
              std::has_unique_object_representations_v<ChunkHead>);

}  // namespace perdix::detail::index::elimda
