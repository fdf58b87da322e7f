// The slots of segments: which of them count (H4), where a pair may lie (H5, H6), and the pair of
// the root block (H7). It knows neither the directory nor latches nor write buffers.
//
// The caller holds an epoch::Guard; and the latch of the segment, or its version, which must be
// valid afterwards. Constant; thread-safe.
#pragma once

#include <algorithm>
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
  KeyHash hash_of(Key key) const { return {hash_(key)}; }
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
    return pool_.template at<Pair>(entry.offset + sizeof(SegmentHead));
  }
  std::span<Pair> all_slots_of(const Entry& entry) const {
    return {slots_of(entry), shape_.slots()};
  }
  SegmentHead& head_of(const Entry& entry) const {
    return *pool_.template at<SegmentHead>(entry.offset);
  }
  Reference overflow_reference(const Entry& entry) const {
    return entry.crowded ? Reference::unpack(pm::load(head_of(entry).overflow)) : Reference{};
  }
  std::span<Pair> overflow_of(const Entry& entry) const {
    const Reference overflow = overflow_reference(entry);
    if (overflow.offset == pm::kNull) return {};
    return checked_overflow(pool_, overflow);
  }

  /// Calls visit(pair) for the slots of the buckets of a hash, until it returns true. Returns
  /// whether it did.
  template <class Visit>
  [[gnu::always_inline]] inline bool for_each_near(const Entry& entry, KeyHash hash,
                                                   Visit visit) const {
    Pair* const slots = slots_of(entry);
    unsigned bucket = hash.bucket(shape_.buckets);
    for (unsigned i = 0; i < kProbe; ++i) {
      for (unsigned at = 0; at < kBucketPairs; ++at) {
        if (visit(slots[bucket * kBucketPairs + at])) return true;
      }
      if (++bucket == shape_.buckets) bucket = 0;
    }
    return false;
  }

  /// Like for_each_near(), for all slots of a segment, those of its overflow last.
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
  Pair* find(const Entry& entry, Key key, KeyHash hash) const {
    if (entry.offset == pm::kNull) return pm::load(root_.zero.key) != 0 ? &root_.zero : nullptr;
    const Hash16 tag = hash.tag();
    Pair* found = nullptr;
    const auto visit = [&](Pair& pair) {
      if (!keys_.equal(pm::load(pair.key), key, tag)) return false;
      found = &pair;
      return true;
    };
    if (for_each_near(entry, hash, visit) || !entry.crowded) [[likely]]
      return found;
    for (Pair& pair : overflow_of(entry)) {
      if (visit(pair)) break;
    }
    return found;
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
    const auto first_free = [&](Pair*& free) {
      return [&](Pair& pair) {
        if (counts(pm::load(pair.key), range)) return false;
        free = &pair;
        return true;
      };
    };
    for_each_near(entry, hash, first_free(slots.free));
    if (slots.free != nullptr) return slots;
    for (Pair& pair : overflow_of(entry)) {
      if (first_free(slots.free_in_overflow)(pair)) break;
    }
    return slots;
  }

 private:
  pool::PoolCore& pool_;
  Root& root_;
  const Shape shape_;
  const util::SeededHash hash_;
  const unsigned lazy_depth_;  // at most as many bits as a key's word tells
  const Codec<K> keys_;
  const ValueCodec values_;
};

}  // namespace perdix::detail::index::cceh
