// The slots of segments: which of them count (H4), where a pair may lie (H5, H6), and the pair of
// the root block (H7). It knows neither the directory nor latches nor write buffers.
//
// The caller holds an epoch::Guard; and the latch of the segment, or its version, which must be
// valid afterwards. Constant; thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string>

#include "index/cceh/layout.h"
#include "index/cceh/recovery.h"
#include "index/cceh/shape.h"
#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "pm/access.h"
#include "pool/pool_core.h"
#include "util/seeded_hash.h"

namespace perdix::detail::index::cceh {

/// The part of a key's hash that its word alone tells.
template <class K>
struct KnownHash {
  static constexpr unsigned kBits = 64;
  static KeyHash of(Word word, const util::SeededHash& hash) { return {hash(word)}; }
};
template <>
struct KnownHash<std::string> {
  static constexpr unsigned kBits = 16;
  static KeyHash of(Word word, const util::SeededHash&) {
    return {std::uint64_t{word_tag(word)} << 48};
  }
};

/// The slots of the two buckets of a hash.
class NearSlots {
 public:
  static constexpr unsigned kCount = 2 * kBucketPairs;

  NearSlots(Pair* slots, std::array<unsigned, 2> buckets)
      : lines_{slots + buckets[0] * kBucketPairs, slots + buckets[1] * kBucketPairs} {}

  Pair& operator[](unsigned i) const { return lines_[i / kBucketPairs][i % kBucketPairs]; }

  /// Bit i is set if tell(key word of slot i) is true. Unrolled and without a branch of its own:
  /// both lines are on their way from memory together, no guess is wrong, and the next lookup finds
  /// room in the processor meanwhile.
  template <class Tell>
  [[gnu::always_inline]] inline unsigned where(Tell tell) const {
    unsigned bits = 0;
#pragma GCC unroll 8
    for (unsigned i = 0; i < kCount; ++i) bits |= unsigned{tell(pm::load((*this)[i].key))} << i;
    return bits;
  }

  /// A slot of the bucket that has more free ones. Null if there is none. `taken`: the others.
  Pair* free_slot(unsigned taken) const {
    constexpr unsigned kAll = (1U << kBucketPairs) - 1;
    const unsigned first = ~taken & kAll, second = ~taken >> kBucketPairs & kAll;
    if ((first | second) == 0) return nullptr;
    const bool in_first = std::popcount(first) >= std::popcount(second);
    return lines_[in_first ? 0 : 1] + std::countr_zero(in_first ? first : second);
  }

 private:
  std::array<Pair*, 2> lines_;
};

/// The slot that has a key, or else one where the key can be added. All null: there is no room.
struct FoundSlots {
  Pair* found = nullptr;
  Pair* free = nullptr;              ///< one of its buckets
  Pair* free_in_overflow = nullptr;  ///< looked for only if no bucket has one
};

template <class K>
class Segments {
 public:
  using Key = View<K>;

  /// `shape`: of the root.
  Segments(pool::PoolCore& pool, Root& root, const Shape& shape, Kind value_kind)
      : pool_(pool),
        root_(root),
        shape_(shape),
        hash_(shape.seed),
        lazy_depth_(std::min(shape.lazy_depth, KnownHash<K>::kBits)),
        keys_(pool),
        values_(pool, value_kind) {}

  pool::PoolCore& pool() const { return pool_; }
  Root& root() const { return root_; }
  const Shape& shape() const { return shape_; }
  const Codec<K>& keys() const { return keys_; }
  const ValueCodec& values() const { return values_; }

  // --- Keys and their hashes ---

  static bool is_zero(Key key) { return key == Key{}; }
  [[gnu::always_inline]] inline KeyHash hash_of(Key key) const { return {hash_(key)}; }
  KeyHash hash_of_word(Word key) const { return hash_of(keys_.view(key)); }
  /// The tag of a key's hash, by its word.
  Hash16 tag_of(Word key) const { return KnownHash<K>::of(key, hash_).tag(); }

  /// Whether a key of a slot counts in a segment of that range (H4).
  bool counts(Word key, HashRange range) const {
    return key != 0 && range.may_hold(KnownHash<K>::of(key, hash_), lazy_depth_);
  }
  /// Whether counts() can tell the pairs that a split of a segment of this depth moves.
  bool tells_moved(unsigned depth) const { return depth < lazy_depth_; }

  /// The bit at `depth` of the hash of a key that counts.
  unsigned bit_of(Word key, unsigned depth) const {
    return depth < lazy_depth_ ? KnownHash<K>::of(key, hash_).bit(depth)
                               : hash_of_word(key).bit(depth);
  }
  /// Whether a key counts in a segment of a range and belongs to `part`, which is the range or one
  /// of its halves.
  bool in_part(Word key, HashRange range, HashRange part) const {
    return counts(key, range) && (part == range || bit_of(key, range.depth) == (part.prefix & 1));
  }

  // --- Places ---

  Pair* slots_of(const Entry& entry) const {
    return pool_.template at<Pair>(entry.offset() + sizeof(SegmentHead));
  }
  std::span<Pair> all_slots_of(const Entry& entry) const {
    return {slots_of(entry), shape_.slots()};
  }
  SegmentHead& head_of(const Entry& entry) const {
    return *pool_.template at<SegmentHead>(entry.offset());
  }
  Reference overflow_reference(const Entry& entry) const {
    return entry.crowded() ? Reference::unpack(pm::load(head_of(entry).overflow)) : Reference{};
  }
  std::span<Pair> overflow_of(const Entry& entry) const {
    const Reference overflow = overflow_reference(entry);
    if (overflow.offset == pm::kNull) return {};
    return checked_overflow(pool_, overflow);
  }

  [[gnu::always_inline]] inline NearSlots near(const Entry& entry, KeyHash hash) const {
    return {slots_of(entry), hash.buckets_of(shape_.buckets)};
  }
  /// Bit i is set if slot i of those has a pair that counts in a segment of that range.
  unsigned taken(const NearSlots& near, HashRange range) const {
    return near.where([&](Word key) { return counts(key, range); });
  }

  /// Calls visit(pair) for all slots of a segment, those of its overflow last, until it returns
  /// true. Returns whether it did.
  template <class Visit>
  bool for_each_slot(const Entry& entry, Visit visit) const {
    for (Pair& pair : all_slots_of(entry)) {
      if (visit(pair)) return true;
    }
    for (Pair& pair : overflow_of(entry)) {
      if (visit(pair)) return true;
    }
    return false;
  }

  /// The slot that has the key, null if none has. No entry: that of the root block. The key belongs
  /// to the segment, so a pair that a split has moved (H4) has another key and another tag. Its
  /// string, which may be freed, is not read.
  [[gnu::always_inline]] inline Pair* find(const Entry& entry, Key key, KeyHash hash) const {
    if (entry.offset() == pm::kNull) return pm::load(root_.zero.key) != 0 ? &root_.zero : nullptr;
    const Hash16 tag = hash.tag();
    const NearSlots slots = near(entry, hash);
    unsigned like = slots.where([&](Word word) { return is_like(word, key, tag); });
    for (; like != 0; like &= like - 1) {
      Pair& pair = slots[static_cast<unsigned>(std::countr_zero(like))];
      if (Codec<K>::kInline || keys_.equal(pm::load(pair.key), key, tag)) return &pair;
    }
    if (entry.crowded()) [[unlikely]] {
      for (Pair& pair : overflow_of(entry)) {
        if (keys_.equal(pm::load(pair.key), key, tag)) return &pair;
      }
    }
    return nullptr;
  }

  /// What a segment of that range has of the key. A free slot is one whose pair does not count.
  FoundSlots search(const Entry& entry, HashRange range, Key key, KeyHash hash) const {
    FoundSlots slots;
    slots.found = find(entry, key, hash);
    if (slots.found != nullptr) return slots;
    if (is_zero(key)) {
      slots.free = &root_.zero;
      return slots;
    }
    const NearSlots both = near(entry, hash);
    slots.free = both.free_slot(taken(both, range));
    if (slots.free != nullptr) return slots;
    for (Pair& pair : overflow_of(entry)) {
      if (counts(pm::load(pair.key), range)) continue;
      slots.free_in_overflow = &pair;
      break;
    }
    return slots;
  }

 private:
  /// Whether a key may have that word, as far as the word alone tells: for numbers, whether it has.
  static bool is_like(Word word, Key key, Hash16 tag) {
    if constexpr (Codec<K>::kInline) {
      return word == key;
    } else {
      return word_tag(word) == tag;
    }
  }

  pool::PoolCore& pool_;
  Root& root_;
  const Shape shape_;
  const util::SeededHash hash_;
  const unsigned lazy_depth_;  // at most as many bits as a key's word tells
  const Codec<K> keys_;
  const ValueCodec values_;
};

}  // namespace perdix::detail::index::cceh
