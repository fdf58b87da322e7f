// What CCEH keeps in PM: a table of extendible hashing whose segments are split in place (Nam et
// al., "Write-Optimized Dynamic Hashing for Persistent Memory", FAST 2019).
//
// Invariants, which check.h verifies and recovery relies on. They hold at every crash point once
// the allocator's records have been resolved (docs/durability/cceh.md):
//   H1. The index's root word is the offset of the root block. Its shape never changes, nor does
//       the seed of its hashes.
//   H2. The directory has 2^depth entries, of which *leaders* decide: entry 0 is one, and behind a
//       leader of depth d comes the entry 2^(depth - d) further on. A leader names the segment of
//       all hashes that begin with its number's first d bits. So one store of a leader splits a
//       segment, or joins two.
//   H3. The entries behind a leader are copies of it for readers, or stale: what a crash has kept
//       from being copied. An entry that is not pending is never at the place where a leader of its
//       depth would be unless it is that leader. So an entry is right if it is not pending and the
//       entry at that place is the same.
//   H4. A pair of a segment counts if its key word is not 0 and its hash begins as the segment's.
//       The others are free slots: pairs that a split has moved stay until they are overwritten.
//       Of the hash the first `lazy_depth` bits are compared: deeper segments have no moved pairs.
//   H5. A pair that counts lies in one of the two buckets of its hash, or in the overflow of its
//       segment. A key has at most one pair that counts.
//   H6. A segment has an overflow only if its leader is marked as crowded.
//   H7. The key whose word is 0 (the number 0, the empty string) has its pair in the root block.
//   H8. Root, directory, segments, overflows, and the strings of pairs that count are one allocated
//       block each, reached in one way.
//   H9. Numbers of segments that are not 0 differ, and none comes back. They are the owners of
//       chains in the log. A chain of a number that no segment has is stale: all of it has been
//       carried out. Else, if no pair of it is in the segment, none has been; if some are, a crash
//       has interrupted their merge, and nothing else has been changed since.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pm/offset.h"

namespace perdix::detail::index::cceh {

inline constexpr unsigned kBucketPairs = 4;  ///< a line
inline constexpr unsigned kOffsetBits = 48;
inline constexpr pm::Offset kOffsetMask = (pm::Offset{1} << kOffsetBits) - 1;

/// A key and a value, as words (index/common/codec.h). Changed by the holder of the segment's
/// latch: the value before the key, which commits an insert and an erase. Never straddles a line.
struct alignas(16) Pair {
  std::uint64_t key;
  std::uint64_t value;
};

/// The offset of a block and the binary logarithm of its size. One store changes both.
/// offset | log << 48.
struct Reference {
  pm::Offset offset = pm::kNull;
  unsigned log = 0;

  constexpr std::uint64_t pack() const noexcept {
    return offset | std::uint64_t{log} << kOffsetBits;
  }
  static constexpr Reference unpack(std::uint64_t word) noexcept {
    return {word & kOffsetMask, static_cast<unsigned>(word >> kOffsetBits)};
  }
};

/// An entry of the directory. offset | depth << 48 | crowded << 56 | pending << 57. Changed by the
/// holder of the directory's lock. Kept as its word: lookups compare it with others as a whole.
class Entry {
 public:
  constexpr Entry() noexcept = default;
  constexpr Entry(pm::Offset segment, unsigned depth) noexcept
      : word_(segment | std::uint64_t{depth} << kOffsetBits) {}

  static constexpr Entry unpack(std::uint64_t word) noexcept { return Entry(word); }
  constexpr std::uint64_t pack() const noexcept { return word_; }

  /// Of the segment; 0 only while the index is being dropped.
  constexpr pm::Offset offset() const noexcept { return word_ & kOffsetMask; }
  /// How many bits the hashes of the segment have in common.
  constexpr unsigned depth() const noexcept {
    return static_cast<unsigned>(word_ >> kOffsetBits & 0xff);
  }
  constexpr bool crowded() const noexcept { return (word_ & kCrowded) != 0; }  ///< H6
  /// H3: readers find the leader first.
  constexpr bool pending() const noexcept { return (word_ & kPending) != 0; }

  constexpr Entry with_depth(unsigned depth) const noexcept {
    return Entry((word_ & ~(std::uint64_t{0xff} << kOffsetBits)) | std::uint64_t{depth}
                                                                       << kOffsetBits);
  }
  constexpr Entry as_crowded() const noexcept { return Entry(word_ | kCrowded); }
  constexpr Entry as_pending() const noexcept { return Entry(word_ | kPending); }
  constexpr Entry settled() const noexcept { return Entry(word_ & ~kPending); }  ///< not pending

  bool operator==(const Entry&) const = default;

 private:
  static constexpr std::uint64_t kCrowded = std::uint64_t{1} << 56;
  static constexpr std::uint64_t kPending = std::uint64_t{1} << 57;

  explicit constexpr Entry(std::uint64_t word) noexcept : word_(word) {}

  std::uint64_t word_ = 0;
};

/// Where everything else is found. `directory` is the commit word of doubling; its logarithm is the
/// depth. `zero` is the pair of H7: its key is 1 if it is there, else 0. `log` is the commit word
/// of the log, `numbers` is moved ahead of the drawn numbers. The rest is constant.
struct Root {
  static constexpr std::uint64_t kMagic = 0x3354'4f52'4845'4343;  // "CCEHROT3"
  /// Those of releases before, in which a pair lay in one of four buckets in a row. Their indexes
  /// can be dropped, and are not opened.
  static constexpr std::array<std::uint64_t, 2> kFormerMagics = {
      0x3154'4f52'4845'4343,   // "CCEHROT1"
      0x3254'4f52'4845'4343};  // "CCEHROT2"

  std::uint64_t magic;
  std::uint32_t buckets;     ///< of a segment
  std::uint32_t lazy_depth;  ///< H4
  std::uint64_t directory;   ///< a Reference
  std::uint64_t log;         ///< of write buffers; 0: the index never had any
  Pair zero;
  std::uint64_t numbers;  ///< of segments: those up to it may have been in use
  std::uint64_t seed;     ///< of hashes
};

/// The first line of a segment. The buckets follow, a line each.
struct SegmentHead {
  static constexpr std::uint64_t kMagic = 0x3147'4553'4845'4343;  // "CCEHSEG1"

  std::uint64_t magic;
  std::uint64_t overflow;  ///< a Reference to 2^log pairs; 0: none. Commit word of its growth
  std::uint64_t number;    ///< H9; 0: it never had a write buffer
  std::array<std::uint64_t, 5> reserved;
};

static_assert(std::has_unique_object_representations_v<Pair> &&
              std::has_unique_object_representations_v<Root> &&
              std::has_unique_object_representations_v<SegmentHead>);
static_assert(sizeof(Reference) == 16, "unpacked, in DRAM");
static_assert(sizeof(Entry) == 8);
static_assert(sizeof(Pair) == 16 && offsetof(Pair, value) == 8);
static_assert(sizeof(Root) == 64 && offsetof(Root, directory) == 16 && offsetof(Root, zero) == 32);
static_assert(sizeof(SegmentHead) == 64 && offsetof(SegmentHead, overflow) == 8);

}  // namespace perdix::detail::index::cceh
