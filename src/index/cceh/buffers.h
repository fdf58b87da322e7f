// Write buffers of segments (Zhao et al. 2024, sections 3.1 and 3.2): new pairs of a segment go
// into its buffer and the log, a line each near the one before, and reach the segment in batches.
//
// The record is the commit. New keys are buffered, and their changes while they are in the buffer.
// Pairs of the segment change in place. So a key is in the buffer or in the segment, not in both:
//   B1. The chain of a buffer says what the buffer holds, and its owner is the segment's number.
//   B2. No key of a buffer has a pair that counts in the segment.
//   B3. The chain has room for as many more records, besides its END, as the buffer has pairs. So
//       each can be erased, whatever else is full.
//
// A merge moves all of a buffer, and then ends the chain:
//   in place      where each pair has a free slot: into these slots. A crash in between leaves
//                 pairs in both, and the merge is completed when the segment is used again (H9).
//   out of place  into a copy of the segment, which the leader's store puts in its place. A crash
//                 before the END leaves a chain whose owner is no segment any more.
//   by a split    the same with two halves, where some pair has no slot.
//
// After a restart, a segment's chain is adopted before anything else is done with the segment; a
// thread in the background adopts those of all others.
#pragma once

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <vector>

#include "index/cceh/cceh.h"
#include "index/cceh/search.h"
#include "index/common/retry.h"
#include "pool/checked.h"

namespace perdix::detail::index::cceh {

/// What the upkeep of the log requires of a table (write_buffers.h).
template <class K>
struct WordTable<K>::Upkeep {
  const WordTable& table;

  void clean(wal::Chain& chain, bool may_split) {
    table.clean(static_cast<Buffer&>(chain), may_split);
  }
  void resume_some(unsigned segments) { table.resume_some(segments); }
  void log_was_shortened() {}
  std::int64_t pairs() const { return table.pairs_.change(); }
};

// --- Lookups: they count under the latch, or if its version is validated ---

template <class K>
auto WordTable<K>::buffer_of(const Seen& seen) const -> Buffer* {
  if (buffers_ == nullptr || seen.entry.offset == pm::kNull) return nullptr;
  return buffers_->of(seen.entry.offset);
}

/// The number of the key's pair; -1 if it has none.
template <class K>
int WordTable<K>::find_buffered(const Buffer& buffer, Key key, KeyHash hash) const {
  const Hash16 tag = hash.tag();
  return buffer.find(tag, [&](unsigned i) { return keys_.equal(buffer.key(i), key, tag); });
}

template <class K>
std::optional<Word> WordTable<K>::buffered_value(const Seen& seen, Key key, KeyHash hash) const {
  const Buffer* buffer = buffer_of(seen);
  const int i = buffer == nullptr ? -1 : find_buffered(*buffer, key, hash);
  return i < 0 ? std::nullopt : std::optional(buffer->value(static_cast<unsigned>(i)));
}

// --- Changes of the buffer of a locked segment ---

/// write_segment() for a key that is pair `i` of the buffer. Returns nullopt if the buffer had to
/// be merged first.
template <class K>
std::optional<bool> WordTable<K>::write_buffered(const Locked& locked, Buffer& buffer, unsigned i,
                                                 const Write& write) {
  if (write.mode == Mode::insert || !value_is(buffer.value(i), write.expected)) return false;
  if (!buffers_->can_grow(buffer)) {
    merge(locked, buffer);
    return std::nullopt;
  }
  records_.replace(log(), buffer, i, write.value);
  return true;
}

/// Adds a new key to the buffer of its segment.
template <class K>
auto WordTable<K>::add_buffered(const Locked& locked, const Write& write, KeyHash hash)
    -> Buffered {
  if (buffers_ == nullptr || !buffers_->any() || is_zero(write.key)) return Buffered::refused;
  Buffer* buffer = buffer_of(locked);
  if (buffer == nullptr) buffer = give_buffer(locked);
  if (buffer == nullptr) return Buffered::refused;
  buffer->hot.store(true, std::memory_order_relaxed);
  if (is_full(*buffer)) {
    merge(locked, *buffer);
    return Buffered::merged;
  }
  if (!buffers_->has_promise(*buffer))  // B3; the log is full, and the segment may have a free slot
    return merge_in_place(locked, *buffer) ? Buffered::merged : Buffered::refused;
  if (!buffers_->admitted()) return Buffered::refused;
  if (buffer->empty_chain()) begin_chain(locked, *buffer);
  records_.add(log(), *buffer, write.key, write.value, hash.tag());
  pairs_.add();
  return Buffered::added;
}

template <class K>
bool WordTable<K>::is_full(const Buffer& buffer) const {
  const unsigned most = buffered_pairs(shape_);
  return buffer.size() >= most || buffer.records >= 4 * most;
}

template <class K>
void WordTable<K>::begin_chain(const Locked& locked, Buffer& buffer) {
  buffer.sure = buffers_->first_promise(buffered_pairs(shape_));
  log().append(buffer, kNote, locked.range.first().bits, 0);
  ++buffer.records;
}

/// Erases pair `i` of a buffer. Cannot fail for want of space: the chain has room (B3).
template <class K>
void WordTable<K>::remove_buffered(Buffer& buffer, unsigned i) {
  records_.remove(log(), buffer, i);
  pairs_.remove();
}

/// Gives a locked segment a free buffer, or now and then that of a segment that is no longer
/// written to. Returns null if there is none.
template <class K>
auto WordTable<K>::give_buffer(const Locked& locked) -> Buffer* {
  auto number = buffers_->acquire(0);
  if (number == 0 && buffers_->may_take(locked.latch->version())) number = take_cold_buffer(locked);
  if (number == 0) return nullptr;
  return buffers_->give_owned_buffer(locked.entry.offset, locked.range.first().bits, number,
                                     head_of(locked.entry).number);
}

/// Merges the buffer of a segment that is no longer written to, and takes it from that segment.
/// Returns its number; 0 if there is none that can be had without waiting. Waits for no latch,
/// since the caller holds one.
template <class K>
auto WordTable<K>::take_cold_buffer(const Locked& locked) -> Buffers::Number {
  const auto number = buffers_->cold();
  if (number == 0) return 0;
  Buffer& buffer = buffers_->at(number);
  const Home* home = buffer.node.load(std::memory_order_acquire);
  if (home == nullptr) return 0;
  const KeyHash note{home->note.load(std::memory_order_relaxed)};
  const Directory::Route route = directory_.find(note);
  Latch& latch = latches_.of(route.entry.offset);
  if (&latch == locked.latch || !latch.try_lock()) return 0;
  Locked other;
  other.latches.add_held(latch);
  other.entry = route.entry;
  other.range = {note.prefix(route.entry.depth), route.entry.depth};
  if (!directory_.current(route) || buffer_of(other) != &buffer) return 0;
  if (!merge_in_place(other, buffer)) return 0;
  pm::on_step("cceh: take the buffer of another segment");
  buffers_->take_from_leaf(buffer);
  return buffers_->acquire(number);
}

/// The segment to which a home led a moment ago.
template <class K>
auto WordTable<K>::see_home(const Home& home) const -> Seen {
  return locate(KeyHash{home.note.load(std::memory_order_relaxed)});
}

// --- Merging ---

/// Merges a buffer into free slots of its segment, which is locked. Returns false, and has changed
/// nothing, if some pair has none.
template <class K>
bool WordTable<K>::merge_in_place(const Locked& locked, Buffer& buffer) const {
  std::vector<Pair> slots = slots_of_part(locked, locked.range);
  std::vector<unsigned> filled;
  filled.reserve(buffer.size());
  for (unsigned i = 0; i < buffer.size(); ++i) {
    const int at = place(slots, {buffer.key(i), buffer.value(i)});
    if (at < 0) return false;
    filled.push_back(static_cast<unsigned>(at));
  }
  fill(slots_of(locked.entry), slots, filled);
  end_chain(buffer);
  return true;
}

/// Copies the slots with the numbers `filled` from `pairs` to `slots`, durably: each as its insert
/// would (the paper's in-place update), but with one fence for all where a fence is a sync. Their
/// order does not matter, since the chain has all of them until its END.
template <class K>
void WordTable<K>::fill(Pair* slots, std::span<const Pair> pairs,
                        std::span<const unsigned> filled) const {
  for (const unsigned at : filled) {
    pm().store(slots[at].value, pairs[at].value);  // not flushed: the same line as the key
    pm().store(slots[at].key, pairs[at].key);
    pm().flush(&slots[at].key, sizeof slots[at].key);  // fenced below
    if (!pm().commits_as_one()) pm().fence();          // each pair as its insert
  }
  if (pm().commits_as_one()) pm().fence();  // all are durable before the END
}

/// Ends the chain of a buffer whose pairs are all in segments, durably, and empties the buffer.
template <class K>
void WordTable<K>::end_chain(Buffer& buffer) const {
  pm::on_step("cceh: a merge ends a chain");
  records_.end(log(), buffer);
}

/// Moves the pairs in the buffer of a locked segment into the segment, or into one or two that
/// replace it. The caller must search again. Throws out_of_space and bad_alloc, and has changed
/// nothing.
template <class K>
void WordTable<K>::merge(const Locked& locked, Buffer& buffer) const {
  if (buffer.empty_chain()) return;
  if (technique_ >= Technique::bo && merge_out_of_place(locked, buffer)) return;
  if (!merge_in_place(locked, buffer)) write_anew(locked, buffer, true);
}

/// Replaces a segment by a copy with the pairs of its buffer. Returns false, and has changed
/// nothing, if there is no space or some pair has no free slot.
template <class K>
bool WordTable<K>::merge_out_of_place(const Locked& locked, Buffer& buffer) const {
  std::vector<Pair> slots = slots_of_part(locked, locked.range);
  for (unsigned i = 0; i < buffer.size(); ++i)
    if (place(slots, {buffer.key(i), buffer.value(i)}) < 0) return false;
  try {
    write_anew(locked, buffer, false);
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
    return false;
  }
  return true;
}

/// Rewrites a locked segment with the pairs of its buffer, as one segment or as two.
template <class K>
void WordTable<K>::write_anew(const Locked& locked, Buffer& buffer, bool in_halves) const {
  const HashRange range = locked.range;
  if (in_halves && !directory_.may_exceed(range.depth)) in_halves = false;  // keys hash alike
  if (in_halves && directory_.depth() == range.depth) directory_.grow(range.depth);
  alloc::Session session = pool_.allocator().session();
  const Entry first = make_part(session, locked, in_halves ? range.half(0) : range, &buffer);
  const Entry middle = in_halves ? make_part(session, locked, range.half(1), &buffer) : Entry{};
  const Reference overflow = overflow_reference(locked.entry);
  session.free(locked.entry.offset);
  if (overflow.offset != pm::kNull) session.free(overflow.offset);
  pm::on_step("cceh: a segment is about to be written anew");
  in_halves ? directory_.commit_change(session, range, first, middle)
            : directory_.commit_replacement(session, range, first);
  end_chain(buffer);
  buffers_->take_from_leaf(buffer);
}

// --- Upkeep ---

/// Merges a buffer, if it still is a segment's. Without `may_split` only where that takes no space.
template <class K>
void WordTable<K>::clean(Buffer& buffer, bool may_split) const {
  const epoch::Guard guard;
  for (;;) {
    const Home* home = buffer.node.load(std::memory_order_acquire);
    if (home == nullptr) return;
    const Seen seen = see_home(*home);
    if (!seen.latch->try_upgrade(seen.version)) continue;
    Locked locked;
    locked.latches.add_held(*seen.latch);
    static_cast<Seen&>(locked) = seen;
    if (buffer_of(locked) != &buffer) return;
    may_split ? merge(locked, buffer) : void(merge_in_place(locked, buffer));
    if (buffer_of(locked) == &buffer && buffer.empty_chain() && buffers_->budget_is_exceeded())
      buffers_->take_from_leaf(buffer);
    return;
  }
}

// --- After a restart ---

/// Adopts the chain of a segment that was seen, if it has one that no thread has adopted. Returns
/// whether the segment is as it was seen.
template <class K>
bool WordTable<K>::resume_segment(const Seen& seen) const {
  const wal::Owner owner = pm::load(head_of(seen.entry).number);
  if (owner == 0 || owner > wal::kMaxOwner || buffers_->was_resumed(owner)) return true;
  const wal::Position head = log().surviving(owner);
  if (head == 0) return true;
  if (!seen.latch->try_upgrade(seen.version)) return false;
  Locked locked;
  locked.latches.add_held(*seen.latch);
  static_cast<Seen&>(locked) = seen;
  if (!buffers_->was_resumed(owner)) adopt_chain(locked, owner, head);
  return false;
}

/// Continues the chain of a locked segment in a buffer. If some of its pairs are in the segment, a
/// crash has interrupted a merge, which is completed (H9).
template <class K>
void WordTable<K>::adopt_chain(const Locked& locked, wal::Owner owner, wal::Position head) const {
  const LoggedChanges logged = read_chain(log(), owner, head);
  if (logged.pairs.size() > buffered_pairs(shape_))
    pool::throw_corrupt(pool_, "the log of a segment", locked.entry.offset);
  pm::on_step("cceh: adopt a chain");
  Buffer& buffer = buffers_->adopt_chain(locked.entry.offset, locked.range.first().bits, owner,
                                         head, static_cast<std::uint16_t>(logged.pairs.size()));
  bool interrupted = logged.pairs.empty();
  for (const auto& [key, value] : logged.pairs) {
    if (has_word(locked, key)) {
      interrupted = true;
    } else {
      buffer.push(key, value, KnownHash<K>::of(key, hash_).tag());
    }
  }
  buffer.records = static_cast<typename Buffer::Count>(logged.records);
  if (interrupted && !merge_in_place(locked, buffer))
    pool::throw_corrupt(pool_, "the log of a segment", locked.entry.offset);
}

/// Whether a segment has a pair that counts with this very word as key.
template <class K>
bool WordTable<K>::has_word(const Seen& seen, Word key) const {
  return for_each_slot(seen.entry, [&](const Pair& pair) {
    return pm::load(pair.key) == key && counts(key, seen.range);
  });
}

/// Has a chain from before the restart adopted by its segment, or ends it if it is stale.
template <class K>
void WordTable<K>::resume_chain(wal::Owner owner, wal::Position head) const {
  const KeyHash note{read_chain(log(), owner, head).note};
  while (!buffers_->was_resumed(owner)) {
    const Seen seen = locate(note);  // adopts the chain if it is that of this segment
    const bool stale = pm::load(head_of(seen.entry).number) != owner;
    if (stale && seen.valid()) buffers_->end_stale(owner, head);
  }
}

/// Adopts or ends up to this many chains from before the restart. When none is left, tells the log,
/// which may then free their records.
template <class K>
void WordTable<K>::resume_some(unsigned chains) const {
  buffers_->resume_some(
      chains, [&](wal::Owner owner, wal::Position head) { resume_chain(owner, head); },
      [&] {
        pm::on_step("cceh: all chains are adopted");
        log().resumed();
        resumption_.set_done();
      });
}

/// Returns when all chains from before the restart are adopted or ended.
template <class K>
void WordTable<K>::require_resumed() const {
  if (buffers_ != nullptr) buffers_->require_resumed(Upkeep{*this}, resumption_);
}

/// Opens the write buffers of a table that has a log, or is to have one.
template <class K>
void WordTable<K>::open_buffers(const IndexOptions& options) {
  technique_ = options.technique;
  const std::uint64_t budget = buffer_budget(options);
  if (path_budget(options) != 0) directory_.open_copy(path_budget(options));
  if (budget != 0 && pm::load(root_.log) == pm::kNull) give_log(pool_, root_.log);
  if (pm::load(root_.log) == pm::kNull) return;
  buffers_ = std::make_unique<Buffers>(arena_, wal::Log::Limits{0}, latches_);
  retry_when_full(pool_,
                  [&] { buffers_->open(pool_, pm::load(root_.log), budget, root_.numbers); });
  if (!log().resuming()) return resumption_.set_done();
  buffers_->resume_in_background(Upkeep{*this}, resumption_, options);
}

}  // namespace perdix::detail::index::cceh
