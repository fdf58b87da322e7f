// Segments with write buffers: the homes of index/common/buffered.h, whose invariants are B1 to B3
// here, too.
//   B4. A chain begins with a note of the first hash of its segment. A segment with a chain is not
//       split. If it is joined it is responsible for more hashes. So the note leads to it.
//
// A merge
//   in place      puts each pair into a free slot (H9)
//   out of place  writes a copy of the segment, which the leader's store puts in its place
//   by a split    writes two halves, where some pair has no slot
#pragma once

#include <optional>
#include <vector>

#include <perdix/error.h>

#include "index/cceh/buffer_shape.h"
#include "index/cceh/builder.h"
#include "index/cceh/router.h"
#include "index/cceh/segments.h"
#include "index/common/buffered.h"
#include "pool/checked.h"

namespace perdix::detail::index::cceh {

template <class K>
class SegmentBuffers;

/// What segments are to their write buffers (index/common/buffered.h).
template <class K>
class SegmentHomes {
 public:
  using KeyType = K;
  using Shape = BufferShape;
  using Seen = SeenSegment;
  using Pair = cceh::Pair;
  using Buffer = WriteBuffer<Shape>;
  static constexpr const char* kLogName = "the log of a segment";
  static constexpr bool kMoves = true;
  static constexpr bool kMergeTakesSpace = false;

  /// All outlive this. `buffers`: of these homes.
  SegmentHomes(const Segments<K>& segments, Router& router, SegmentBuffers<K>& buffers)
      : segments_(segments), router_(router), builder_(segments), buffers_(buffers) {}

  unsigned capacity() const { return buffered_pairs(segments_.shape()); }
  pm::Offset place(const SeenSegment& segment) const { return segment.entry.offset(); }
  std::uint64_t& number_word(const SeenSegment& segment) const {
    return segments_.head_of(segment.entry).number;
  }
  wal::Owner number(const SeenSegment& segment) const { return pm::load(number_word(segment)); }
  std::uint64_t note(const SeenSegment& segment) const { return segment.range.first().bits; }
  Hash16 tag(Word key) const { return segments_.tag_of(key); }

  /// The segment has not changed since its chain began, or has been joined (B4).
  SeenSegment at(pm::Offset place, std::uint64_t hash) const {
    const SeenSegment segment = router_.held({hash});
    if (segment.entry.offset() != place) pool::throw_corrupt(segments_.pool(), kLogName, place);
    return segment;
  }

  SeenSegment route(wal::Owner, std::uint64_t hash) const { return router_.look({hash}); }
  bool owns(const SeenSegment& segment, wal::Owner owner) const { return number(segment) == owner; }

  bool has_word(const SeenSegment& segment, Word key) const {
    return segments_.for_each_slot(segment.entry, [&](const Pair& pair) {
      return pm::load(pair.key) == key && segments_.counts(key, segment.range);
    });
  }

  template <class End>
  bool merge_in_place(const SeenSegment& segment, const Buffer& buffer, End end) const {
    const auto filled = fill_free_slots(segment, buffer);
    if (!filled) return false;
    fill(segments_.slots_of(segment.entry), *filled);
    end();
    return true;
  }

  /// As one segment if that has a slot for each pair, else as two.
  void rewrite(LockedSegment& segment, Buffer& buffer, bool full) const {
    const bool fits = !full && has_room(segment, buffer);
    try {
      write_anew(segment, buffer, !fits);
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space || !fits) throw;
      buffers_.merge_in_place(segment, buffer);
    }
  }

 private:
  /// A copy of a segment's slots, and the numbers of those that pairs of a buffer have filled.
  struct Filled {
    std::vector<Pair> slots;
    std::vector<unsigned> numbers;
  };

  /// Puts the pairs of a buffer into free slots of a copy of the segment. None if some pair has
  /// none.
  std::optional<Filled> fill_free_slots(const SeenSegment& segment, const Buffer& buffer) const {
    Filled filled{builder_.slots_of_part(segment, segment.range), {}};
    filled.numbers.reserve(buffer.size());
    for (unsigned i = 0; i < buffer.size(); ++i) {
      const Pair pair{buffer.key(i), buffer.value(i)};
      Pair* const slot = builder_.free_slot(filled.slots, pair);
      if (slot == nullptr) return std::nullopt;
      *slot = pair;
      filled.numbers.push_back(static_cast<unsigned>(slot - filled.slots.data()));
    }
    return filled;
  }

  /// Whether a copy of the segment takes the pairs of a buffer, some of its own in other slots.
  bool has_room(const SeenSegment& segment, const Buffer& buffer) const {
    std::vector<Pair> slots = builder_.slots_of_part(segment, segment.range);
    for (unsigned i = 0; i < buffer.size(); ++i) {
      if (!builder_.place(slots, {buffer.key(i), buffer.value(i)})) return false;
    }
    return true;
  }

  /// Copies the slots that were filled, durably: each as its insert would (the paper's in-place
  /// update), but with one fence for all where a fence is a sync. Their order does not matter,
  /// since the chain has all of them until its END.
  void fill(Pair* slots, const Filled& filled) const {
    for (const unsigned at : filled.numbers) {
      pm().store(slots[at].value, filled.slots[at].value);  // not flushed: the same line as the key
      pm().store(slots[at].key, filled.slots[at].key);
      pm().flush(&slots[at].key, sizeof slots[at].key);  // fenced below
      if (!pm().commits_as_one()) pm().fence();          // each pair as its insert
    }
    if (pm().commits_as_one()) pm().fence();  // all are durable before the END
  }

  /// Rewrites a locked segment with the pairs of its buffer, as one segment or as two.
  void write_anew(const SeenSegment& segment, Buffer& buffer, bool in_halves) const {
    const HashRange range = segment.range;
    Directory& directory = router_.directory();
    if (in_halves && !directory.may_exceed(range.depth)) in_halves = false;  // keys hash alike
    if (in_halves && directory.depth() == range.depth) directory.grow(range.depth);
    alloc::Session session = segments_.pool().allocator().session();
    const auto make = [&](HashRange part) {
      return builder_.make_part(session, segment, part, &buffer);
    };
    const Entry first = make(in_halves ? range.half(0) : range);
    const Entry middle = in_halves ? make(range.half(1)) : Entry{};
    builder_.free(session, segment.entry);
    pm::on_step("cceh: a segment is about to be written anew");
    in_halves ? directory.commit_change(session, range, first, middle)
              : directory.commit_replacement(session, range, first);
    buffers_.leave(buffer);
  }

  const pm::Persister& pm() const { return segments_.pool().pm(); }

  const Segments<K>& segments_;
  Router& router_;
  const SegmentBuilder<K> builder_;
  SegmentBuffers<K>& buffers_;
};

/// The write buffers of a table's segments.
template <class K>
class SegmentBuffers : public Buffered<SegmentHomes<K>> {
 public:
  /// All outlive this. `pairs`: of the table.
  SegmentBuffers(const Segments<K>& segments, Router& router, PairCount& pairs, Technique technique)
      : Buffered<SegmentHomes<K>>(
            SegmentHomes<K>(segments, router, *this),
            {segments.pool(), segments.keys(), segments.values(), router.latches(), pairs},
            technique) {}
};

}  // namespace perdix::detail::index::cceh
