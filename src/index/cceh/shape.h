// The numbers of an index that its creation decides, and which part of a key's hash decides what.
// Keys are hashed with a seed of the index's own (util/seeded_hash.h).
//
//   bits of the hash   decide
//   63 ...             the segment (as many as its depth); the first 16 are the tag of a string
//   31 ... 0           its two buckets in its segment
//
// So a split needs one more bit, and a pair keeps its buckets. Small values; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "index/cceh/layout.h"
#include "index/common/codec.h"

namespace perdix::detail::index::cceh {

inline constexpr std::string_view kEngineName = "cceh";

struct KeyHash {
  std::uint64_t bits = 0;

  Hash16 tag() const { return static_cast<Hash16>(bits >> 48); }
  std::uint64_t prefix(unsigned depth) const { return bits >> 1 >> (63 - depth); }  // 0 of 0
  unsigned bit(unsigned depth) const { return static_cast<unsigned>(bits >> (63 - depth) & 1); }
  /// The two buckets, of `buckets`, in which a pair may lie. They differ.
  std::array<unsigned, 2> buckets_of(unsigned buckets) const {
    constexpr std::uint32_t kOdd = 0x9e37'79b1;  // all bits decide the first ones of the product
    const auto low = static_cast<std::uint32_t>(bits);
    const unsigned first = scale(low, buckets), second = scale(low * kOdd, buckets);
    if (second != first) return {first, second};
    return {first, second + 1 == buckets ? 0 : second + 1};
  }

 private:
  static unsigned scale(std::uint32_t fraction, unsigned count) {
    return static_cast<unsigned>(std::uint64_t{fraction} * count >> 32);
  }
};

/// All hashes that begin with the same `depth` bits.
struct HashRange {
  std::uint64_t prefix = 0;
  unsigned depth = 0;

  bool operator==(const HashRange&) const = default;

  HashRange half(unsigned side) const { return {prefix * 2 + side, depth + 1}; }
  HashRange parent() const { return {prefix / 2, depth - 1}; }

  KeyHash first() const { return {depth == 0 ? 0 : prefix << (64 - depth)}; }
  /// The hash behind the last one; 0 if that is the greatest of all.
  std::uint64_t end() const { return depth == 0 ? 0 : (prefix + 1) << (64 - depth); }

  /// Whether a hash of which the first bits are known lies in the range, as far as they say.
  bool may_hold(KeyHash hash, unsigned known_bits) const {
    const unsigned bits = depth < known_bits ? depth : known_bits;
    return hash.prefix(bits) == prefix >> (depth - bits);
  }
};

struct Shape {
  unsigned buckets = 254;    ///< of a segment
  unsigned lazy_depth = 64;  ///< H4
  std::uint64_t seed = 0;    ///< of hashes; 0: a new index draws it

  bool operator==(const Shape&) const = default;

  constexpr unsigned slots() const { return buckets * kBucketPairs; }
  std::uint64_t segment_bytes() const {
    return sizeof(SegmentHead) + std::uint64_t{slots()} * sizeof(Pair);
  }
};

}  // namespace perdix::detail::index::cceh
