// New segments and overflows, in blocks that nothing leads to yet. They are durable with the commit
// of the session that has reserved them. The caller holds the latch of the segment whose pairs
// they get. What throws out_of_space or bad_alloc has changed nothing.
#pragma once

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "alloc/session.h"
#include "index/cceh/buffer_shape.h"
#include "index/cceh/router.h"
#include "index/cceh/segments.h"

namespace perdix::detail::index::cceh {

template <class K>
class SegmentBuilder {
 public:
  using Buffer = WriteBuffer<BufferShape>;

  /// The segments outlive this.
  explicit SegmentBuilder(const Segments<K>& segments) : segments_(segments) {}

  /// A copy of a segment's slots in which only pairs of a part of it are left.
  std::vector<Pair> slots_of_part(const SeenSegment& seen, HashRange part) const {
    std::vector<Pair> copy(segments_.shape().slots());
    const Pair* const slots = segments_.slots_of(seen.entry);
    for (std::size_t i = 0; i < copy.size(); ++i) {
      const Word key = pm::load(slots[i].key);
      if (segments_.in_part(key, seen.range, part)) copy[i] = {key, pm::load(slots[i].value)};
    }
    return copy;
  }

  /// A free slot of the buckets of a pair in `slots`, a copy of a segment's in DRAM. Null if there
  /// is none.
  Pair* free_slot(std::span<Pair> slots, const Pair& pair) const {
    return free_slot(near(slots, pair));
  }

  /// Puts a pair into a free slot of its buckets in such a copy, or into that of a pair that has
  /// room in its other bucket. Returns whether there was one.
  bool place(std::span<Pair> slots, const Pair& pair) const {
    const NearSlots its = near(slots, pair);
    Pair* slot = free_slot(its);
    for (unsigned i = 0; slot == nullptr && i < NearSlots::kCount; ++i) {
      Pair* const other = free_slot(near(slots, its[i]));
      if (other == nullptr) continue;
      *other = its[i];
      slot = &its[i];
    }
    if (slot != nullptr) *slot = pair;
    return slot != nullptr;
  }

  /// Makes a segment with the pairs of a part of a locked one, mostly in the same slots, and with
  /// the pairs of that part that `buffer` has, if it is not null.
  Entry make_part(alloc::Session& session, const SeenSegment& locked, HashRange part,
                  const Buffer* buffer) const {
    std::vector<Pair> slots = slots_of_part(locked, part), others;
    const auto add = [&](const Pair& pair) {
      if (segments_.in_part(pair.key, locked.range, part) && !place(slots, pair))
        others.push_back(pair);
    };
    for (const Pair& pair : segments_.overflow_of(locked.entry))
      add({pm::load(pair.key), pm::load(pair.value)});
    for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i)
      add({buffer->key(i), buffer->value(i)});
    Entry made{session.reserve(segments_.shape().segment_bytes()), part.depth};
    SegmentHead head{SegmentHead::kMagic, 0, 0, {}};
    if (!others.empty()) {
      head.overflow = make_overflow(session, others).pack();
      made = made.as_crowded();
    }
    // Durable before the commit that links the segment, by its fence.
    pm().stream(&segments_.head_of(made), &head, sizeof head);
    pm().stream(segments_.slots_of(made), slots.data(), slots.size() * sizeof(Pair));
    return made;
  }

  /// Makes an overflow that begins with these pairs and has room for as many more.
  Reference make_overflow(alloc::Session& session, std::span<const Pair> pairs) const {
    constexpr std::size_t kLeast = 16;
    const auto log = static_cast<unsigned>(std::bit_width(std::max(2 * pairs.size(), kLeast) - 1));
    const std::size_t bytes = sizeof(Pair) << log;
    const Reference made{session.reserve(bytes), log};
    auto* const slots = segments_.pool().template at<Pair>(made.offset);
    pm().zero(slots, bytes);
    if (!pairs.empty()) pm().copy(slots, pairs.data(), pairs.size_bytes());
    pm().flush(slots, bytes);  // durable before the commit that links it, by its fence
    return made;
  }

  /// Adds the blocks of a segment to those that the session frees.
  void free(alloc::Session& session, const Entry& entry) const {
    const Reference overflow = segments_.overflow_reference(entry);
    session.free(entry.offset());
    if (overflow.offset != pm::kNull) session.free(overflow.offset);
  }

 private:
  NearSlots near(std::span<Pair> slots, const Pair& pair) const {
    const KeyHash hash = segments_.hash_of_word(pair.key);
    return {slots.data(), hash.buckets_of(segments_.shape().buckets)};
  }
  static Pair* free_slot(const NearSlots& near) {
    return near.free_slot(near.where([](Word key) { return key != 0; }));
  }
  const pm::Persister& pm() const { return segments_.pool().pm(); }

  const Segments<K>& segments_;
};

}  // namespace perdix::detail::index::cceh
