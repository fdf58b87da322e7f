// Structure modifications: displacement of a pair, split of a segment, its overflow, and joining of
// empty segments.
//
// Where both buckets of a key are full, a pair of them that has room in its other bucket moves
// there. So a segment is split only when it is nearly full.
//
// A split writes a new segment with the pairs of the upper half, in the slots that they have in the
// old one; the commit is a store of the leader, which then has one bit more (directory.h). The old
// segment is not written: pairs that have moved do not count in it any more, and their slots are
// free (the paper's lazy deletion). For a string key this is decided by its tag, so by 16 bits. A
// deeper split rewrites both halves, and frees the old segment with the commit.
//
// Keys can hash alike. So no split is made where all pairs that fill the buckets of a key would
// stay together with the key. Then the pair goes to the segment's overflow, an array that is
// searched as a whole.
//
// The caller holds an epoch::Guard, and the latch of the segment. What throws out_of_space or
// bad_alloc has changed nothing.
#pragma once

#include <vector>

#include "index/cceh/builder.h"
#include "index/cceh/pair_writer.h"
#include "index/cceh/search.h"

namespace perdix::detail::index::cceh {

template <class K>
class SegmentStructure {
 public:
  /// Both outlive this.
  SegmentStructure(SegmentSearch<K>& search, const PairWriter<K>& writer)
      : search_(search),
        segments_(search.segments()),
        writer_(writer),
        directory_(search.router().directory()),
        builder_(segments_) {}

  /// Makes room where the buckets of a hash are full: merges the segment's buffer, moves a pair to
  /// its other bucket, splits the segment, or gives it an overflow. Returns the slot for the pair,
  /// or null if the caller must search again. `free_in_overflow`: a free slot of the overflow, null
  /// if it has none.
  Pair* make_room(LockedSegment& locked, KeyHash hash, Pair* free_in_overflow) {
    if (auto* const buffer = search_.buffer_of(locked);
        buffer != nullptr && !buffer->empty_chain()) {
      search_.buffers()->merge(locked, *buffer);
      return nullptr;
    }
    if (Pair* const freed = displace(locked, hash)) return freed;
    if (split_helps(locked, hash)) {
      split(locked);
      return nullptr;
    }
    if (free_in_overflow == nullptr) grow_overflow(locked);
    return free_in_overflow;
  }

  /// Joins segments without pairs, in one round over all segments. Returns whether there were any.
  /// The caller holds no latch, and needs no guard.
  bool join_empty_segments() {
    bool any = false;
    for (KeyHash at;;) {
      const epoch::Guard guard;
      const SeenSegment seen = search_.locate(at);
      if (seen.range.depth > 0 && !search_.holds_pairs(seen))
        any |= join_below(seen.range.parent());
      at.bits = seen.range.end();
      if (at.bits == 0) return any;
    }
  }

 private:
  /// Moves one of the pairs that fill the buckets of a hash to its other bucket. Returns its slot,
  /// null if none has room there.
  Pair* displace(const LockedSegment& locked, KeyHash hash) const {
    const NearSlots full = segments_.near(locked.entry, hash);
    for (unsigned i = 0; i < NearSlots::kCount; ++i) {
      const NearSlots its =
          segments_.near(locked.entry, segments_.hash_of_word(pm::load(full[i].key)));
      Pair* const free = its.free_slot(segments_.taken(its, locked.range));
      if (free == nullptr) continue;
      pm::on_step("cceh: a pair is about to move");
      writer_.move(full[i], *free);
      return &full[i];
    }
    return nullptr;
  }

  /// Whether a split parts what fills the buckets of a hash, and the directory may have room for
  /// it.
  bool split_helps(const LockedSegment& locked, KeyHash hash) const {
    const unsigned depth = locked.range.depth;
    if (!directory_.may_exceed(depth)) return false;
    return segments_.near(locked.entry, hash).where([&](Word key) {
      return segments_.bit_of(key, depth) != hash.bit(depth);
    }) != 0;
  }

  /// Splits a locked segment: in place, or, deeper than H4 tells moved pairs, into two new ones.
  void split(const LockedSegment& locked) {
    const unsigned depth = locked.range.depth;
    if (directory_.depth() == depth) directory_.grow(depth);
    alloc::Session session = segments_.pool().allocator().session();
    const Entry right = builder_.make_part(session, locked, locked.range.half(1), nullptr);
    Entry left = locked.entry.with_depth(depth + 1);
    const bool anew = !segments_.tells_moved(depth);
    if (anew) {
      left = builder_.make_part(session, locked, locked.range.half(0), nullptr);
      builder_.free(session, locked.entry);
    }
    pm::on_step("cceh: a segment is about to be split");
    directory_.commit_change(session, locked.range, left, right);
    if (anew) take_buffer_from(locked);
  }

  /// Gives a locked segment an overflow with room for at least as many pairs as it has there.
  void grow_overflow(const LockedSegment& locked) {
    const Reference old = segments_.overflow_reference(locked.entry);
    std::vector<Pair> kept;
    for (const Pair& pair : segments_.overflow_of(locked.entry)) {
      const Pair words{pm::load(pair.key), pm::load(pair.value)};
      if (segments_.counts(words.key, locked.range)) kept.push_back(words);
    }
    alloc::Session session = segments_.pool().allocator().session();
    const Reference made = builder_.make_overflow(session, kept);
    if (!locked.entry.crowded()) directory_.mark_crowded(locked.range, locked.entry);
    if (old.offset != pm::kNull) session.free(old.offset);
    session.commit(pm::set_word(segments_.head_of(locked.entry).overflow, made.pack()));
  }

  /// Joins the two segments of the halves of a range if one of them has no pairs. Returns false if
  /// neither is empty, if one was split further, or if another thread writes to one of them.
  bool join_below(HashRange parent) {
    const SeenSegment left = search_.locate(parent.half(0).first());
    const SeenSegment right = search_.locate(parent.half(1).first());
    if (left.range != parent.half(0) || right.range != parent.half(1)) return false;
    LatchSet latches;
    if (!left.latch->try_upgrade(left.version)) return false;
    latches.add_held(*left.latch);
    if (right.latch == left.latch) {
      if (right.version != left.version) return false;
    } else {
      if (!right.latch->try_upgrade(right.version)) return false;
      latches.add_held(*right.latch);
    }
    const bool right_goes = !search_.holds_pairs(right);
    if (!right_goes && search_.holds_pairs(left)) return false;
    const SeenSegment& freed = right_goes ? right : left;
    const SeenSegment& kept = right_goes ? left : right;
    take_buffer_from(freed);
    clear_moved(kept);
    alloc::Session session = segments_.pool().allocator().session();
    builder_.free(session, freed.entry);
    directory_.commit_change(session, parent, kept.entry.with_depth(parent.depth), right.entry);
    return true;
  }

  /// Empties the slots of pairs that were moved, which would count again once the segment is
  /// responsible for more (H4).
  void clear_moved(const SeenSegment& kept) {
    const pm::Persister& pm = segments_.pool().pm();
    segments_.for_each_slot(kept.entry, [&](Pair& pair) {
      const Word key = pm::load(pair.key);
      if (key == 0 || segments_.counts(key, kept.range)) return false;
      pm.store(pair.key, 0);
      pm.flush(&pair.key, sizeof pair.key);  // durable before the commit, by its fence
      return false;
    });
  }

  void take_buffer_from(const SeenSegment& seen) {
    if (search_.buffers() != nullptr) search_.buffers()->take_from(seen.entry.offset());
  }

  const SegmentSearch<K>& search_;
  const Segments<K>& segments_;
  const PairWriter<K>& writer_;
  Directory& directory_;
  const SegmentBuilder<K> builder_;
};

}  // namespace perdix::detail::index::cceh
