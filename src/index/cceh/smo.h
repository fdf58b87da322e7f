// Structure modifications: split of a segment, its overflow, and joining of empty segments.
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

#include <algorithm>
#include <bit>
#include <exception>

#include "index/cceh/cceh.h"
#include "index/cceh/search.h"

namespace perdix::detail::index::cceh {

/// Makes room where the buckets of a hash are full: merges the segment's buffer, splits the
/// segment, or gives it an overflow. Returns the slot for the pair, or null if the caller must
/// search again. `free_in_overflow`: a free slot of the overflow, null if it has none.
template <class K>
Pair* WordTable<K>::make_room(Locked& locked, KeyHash hash, Pair* free_in_overflow) {
  if (Buffer* const buffer = buffer_of(locked); buffer != nullptr && !buffer->empty_chain()) {
    buffers_->merge(locked, *buffer);
    return nullptr;
  }
  if (split_helps(locked, hash)) {
    split(locked);
    return nullptr;
  }
  if (free_in_overflow == nullptr) grow_overflow(locked);
  return free_in_overflow;
}

/// The bit at `depth` of the hash of a pair that counts.
template <class K>
unsigned WordTable<K>::bit_of(Word key, unsigned depth) const {
  return depth < lazy_depth_ ? KnownHash<K>::of(key, hash_).bit(depth)
                             : hash_of_word(key).bit(depth);
}

/// Whether a split parts what fills the buckets of a hash, and the directory may have room for it.
template <class K>
bool WordTable<K>::split_helps(const Locked& locked, KeyHash hash) const {
  const unsigned depth = locked.range.depth;
  if (!directory_.may_exceed(depth)) return false;
  return for_each_near(locked.entry, hash, [&](const Pair& pair) {
    return bit_of(pm::load(pair.key), depth) != hash.bit(depth);
  });
}

/// Whether a key counts in a segment of a range and belongs to `part`, which is the range or one of
/// its halves.
template <class K>
bool WordTable<K>::in_part(Word key, HashRange range, HashRange part) const {
  return counts(key, range) && (part == range || bit_of(key, range.depth) == (part.prefix & 1));
}

/// Puts a pair into a free slot of its buckets in `slots`, a copy of a segment's in DRAM. Returns
/// the number of the slot; -1 if none is free.
template <class K>
int WordTable<K>::place(std::span<Pair> slots, const Pair& pair) const {
  unsigned bucket = hash_of_word(pair.key).bucket(shape_.buckets);
  for (unsigned i = 0; i < kProbe; ++i) {
    for (unsigned at = bucket * kBucketPairs; at < (bucket + 1) * kBucketPairs; ++at) {
      if (slots[at].key != 0) continue;
      slots[at] = pair;
      return static_cast<int>(at);
    }
    if (++bucket == shape_.buckets) bucket = 0;
  }
  return -1;
}

/// A copy of a segment's slots in which only pairs of a part of it are left.
template <class K>
std::vector<Pair> WordTable<K>::slots_of_part(const Seen& seen, HashRange part) const {
  std::vector<Pair> copy(shape_.slots());
  const std::span<const Pair> slots(slots_of(seen.entry), shape_.slots());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Word key = pm::load(slots[i].key);
    if (in_part(key, seen.range, part)) copy[i] = {key, pm::load(slots[i].value)};
  }
  return copy;
}

/// Splits a locked segment: in place, or, deeper than H4 tells moved pairs, into two new ones.
template <class K>
void WordTable<K>::split(const Locked& locked) {
  const unsigned depth = locked.range.depth;
  if (directory_.depth() == depth) directory_.grow(depth);
  alloc::Session session = pool_.allocator().session();
  const Entry right = make_part(session, locked, locked.range.half(1), nullptr);
  Entry left = locked.entry;
  left.depth = depth + 1;
  const bool anew = depth >= lazy_depth_;
  if (anew) {
    left = make_part(session, locked, locked.range.half(0), nullptr);
    const Reference overflow = overflow_reference(locked.entry);
    session.free(locked.entry.offset);
    if (overflow.offset != pm::kNull) session.free(overflow.offset);
  }
  pm::on_step("cceh: a segment is about to be split");
  directory_.commit_change(session, locked.range, left, right);
  if (anew && buffers_ != nullptr) buffers_->take_from(locked.entry.offset);
}

/// Makes a segment with the pairs of a part of a locked one, in the same slots, and with the pairs
/// of that part that `buffer` has, if it is not null. Durable with the session's commit.
template <class K>
Entry WordTable<K>::make_part(alloc::Session& session, const Seen& locked, HashRange part,
                              const Buffer* buffer) const {
  std::vector<Pair> slots = slots_of_part(locked, part), others;
  const auto add = [&](const Pair& pair) {
    if (in_part(pair.key, locked.range, part) && place(slots, pair) < 0) others.push_back(pair);
  };
  for (const Pair& pair : overflow_of(locked.entry))
    add({pm::load(pair.key), pm::load(pair.value)});
  for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i)
    add({buffer->key(i), buffer->value(i)});
  Entry made{session.reserve(shape_.segment_bytes()), part.depth, false, false};
  SegmentHead head{SegmentHead::kMagic, 0, 0, {}};
  if (!others.empty()) {
    head.overflow = make_overflow(session, others).pack();
    made.crowded = true;
  }
  // Durable before the commit that links the segment, by its fence.
  pm().stream(&head_of(made), &head, sizeof head);
  pm().stream(slots_of(made), slots.data(), slots.size() * sizeof(Pair));
  return made;
}

/// Makes an overflow that begins with these pairs and has room for as many more. Durable with the
/// session's commit.
template <class K>
Reference WordTable<K>::make_overflow(alloc::Session& session, std::span<const Pair> pairs) const {
  constexpr std::size_t kLeast = 16;
  const auto log = static_cast<unsigned>(std::bit_width(std::max(2 * pairs.size(), kLeast) - 1));
  const std::size_t bytes = sizeof(Pair) << log;
  const Reference made{session.reserve(bytes), log};
  auto* const slots = pool_.template at<Pair>(made.offset);
  pm().zero(slots, bytes);
  if (!pairs.empty()) pm().copy(slots, pairs.data(), pairs.size_bytes());
  pm().flush(slots, bytes);  // durable before the commit that links it, by its fence
  return made;
}

/// Gives a locked segment an overflow with room for at least as many pairs as it has there.
template <class K>
void WordTable<K>::grow_overflow(const Locked& locked) {
  const Reference old = overflow_reference(locked.entry);
  std::vector<Pair> kept;
  for (const Pair& pair : overflow_of(locked.entry)) {
    const Pair words{pm::load(pair.key), pm::load(pair.value)};
    if (counts(words.key, locked.range)) kept.push_back(words);
  }
  alloc::Session session = pool_.allocator().session();
  const Reference made = make_overflow(session, kept);
  if (!locked.entry.crowded) directory_.mark_crowded(locked.range, locked.entry);
  if (old.offset != pm::kNull) session.free(old.offset);
  session.commit(pm::set_word(head_of(locked.entry).overflow, made.pack()));
}

// --- Joining -------------------------------------------------------------------------------------

/// For a full pool: frees what the log no longer needs, and segments without pairs. Returns whether
/// there was any.
template <class K>
bool WordTable<K>::reclaim_space() noexcept {
  bool any = buffers_ != nullptr && buffers_->reclaim_space();
  try {
    while (join_empty_segments()) any = true;
  } catch (const std::exception&) {
    // There is no memory, or the pool is damaged, which the next call that reads there reports.
  }
  return any;
}

template <class K>
bool WordTable<K>::holds_pairs(const Seen& seen) const {
  const Buffer* buffer = buffer_of(seen);
  if (buffer != nullptr && !buffer->empty_chain()) return true;
  return for_each_slot(seen.entry,
                       [&](const Pair& pair) { return counts(pm::load(pair.key), seen.range); });
}

/// Joins segments without pairs, in one round over all segments. Returns whether there were any.
template <class K>
bool WordTable<K>::join_empty_segments() {
  bool any = false;
  for (KeyHash at;;) {
    const epoch::Guard guard;
    const Seen seen = locate(at);
    if (seen.range.depth > 0 && !holds_pairs(seen)) any |= join_below(seen.range.parent());
    at.bits = seen.range.end();
    if (at.bits == 0) return any;
  }
}

/// Joins the two segments of the halves of a range if one of them has no pairs. Returns false if
/// neither is empty, if one was split further, or if another thread writes to one of them.
template <class K>
bool WordTable<K>::join_below(HashRange parent) {
  const Seen left = locate(parent.half(0).first());
  const Seen right = locate(parent.half(1).first());
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
  const bool right_goes = !holds_pairs(right);
  if (!right_goes && holds_pairs(left)) return false;
  const Seen& freed = right_goes ? right : left;
  const Seen& kept = right_goes ? left : right;
  if (buffers_ != nullptr) buffers_->take_from(freed.entry.offset);
  clear_moved(kept);
  alloc::Session session = pool_.allocator().session();
  session.free(freed.entry.offset);
  const Reference overflow = overflow_reference(freed.entry);
  if (overflow.offset != pm::kNull) session.free(overflow.offset);
  Entry joined = kept.entry;
  joined.depth = parent.depth;
  directory_.commit_change(session, parent, joined, right.entry);
  return true;
}

/// Empties the slots of pairs that were moved, which would count again once the segment is
/// responsible for more (H4).
template <class K>
void WordTable<K>::clear_moved(const Seen& kept) {
  for_each_slot(kept.entry, [&](Pair& pair) {
    const Word key = pm::load(pair.key);
    if (key == 0 || counts(key, kept.range)) return false;
    pm().store(pair.key, 0);
    pm().flush(&pair.key, sizeof pair.key);  // durable before the commit, by its fence
    return false;
  });
}

}  // namespace perdix::detail::index::cceh
