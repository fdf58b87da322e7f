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

#include <cassert>
#include <optional>

#include "index/cceh/cceh.h"
#include "index/cceh/search.h"

namespace perdix::detail::index::cceh {

/// The segment has not changed since its chain began, or has been joined (B4).
template <class K>
auto WordTable<K>::Homes::at(pm::Offset place, std::uint64_t hash) const -> Seen {
  const KeyHash first{hash};
  for (;;) {
    const Directory::Route route = table.directory_.find(first);
    if (!table.directory_.current(route)) continue;
    if (route.entry.offset != place) pool::throw_corrupt(table.pool_, kLogName, place);
    const HashRange range{first.prefix(route.entry.depth), route.entry.depth};
    return {route.entry, range, &table.latches_.of(place)};
  }
}

template <class K>
bool WordTable<K>::Homes::has_word(const Seen& segment, Word key) const {
  return table.for_each_slot(segment.entry, [&](const cceh::Pair& pair) {
    return pm::load(pair.key) == key && table.counts(key, segment.range);
  });
}

// --- Merging ---

/// Puts the pairs of a buffer into free slots of a copy of the segment. None if some pair has none.
template <class K>
auto WordTable<K>::place_all(const Seen& segment, const Buffer& buffer) const
    -> std::optional<Filled> {
  Filled filled{slots_of_part(segment, segment.range), {}};
  filled.numbers.reserve(buffer.size());
  for (unsigned i = 0; i < buffer.size(); ++i) {
    const int at = place(filled.slots, {buffer.key(i), buffer.value(i)});
    if (at < 0) return std::nullopt;
    filled.numbers.push_back(static_cast<unsigned>(at));
  }
  return filled;
}

template <class K>
template <class End>
bool WordTable<K>::Homes::merge_in_place(const Seen& segment, const WriteBuffer<Shape>& buffer,
                                         End end) const {
  const auto filled = table.place_all(segment, buffer);
  if (!filled) return false;
  table.fill(table.slots_of(segment.entry), *filled);
  end();
  return true;
}

/// Copies the slots that were filled, durably: each as its insert would (the paper's in-place
/// update), but with one fence for all where a fence is a sync. Their order does not matter, since
/// the chain has all of them until its END.
template <class K>
void WordTable<K>::fill(Pair* slots, const Filled& filled) const {
  for (const unsigned at : filled.numbers) {
    pm().store(slots[at].value, filled.slots[at].value);  // not flushed: the same line as the key
    pm().store(slots[at].key, filled.slots[at].key);
    pm().flush(&slots[at].key, sizeof slots[at].key);  // fenced below
    if (!pm().commits_as_one()) pm().fence();          // each pair as its insert
  }
  if (pm().commits_as_one()) pm().fence();  // all are durable before the END
}

/// As one segment if that has a slot for each pair, else as two.
template <class K>
void WordTable<K>::Homes::rewrite(Locked& segment, WriteBuffer<Shape>& buffer, bool full) const {
  const bool fits = !full && table.place_all(segment, buffer).has_value();
  try {
    table.write_anew(segment, buffer, !fits);
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space || !fits) throw;
    table.buffers_->merge_in_place(segment, buffer);
  }
}

/// Rewrites a locked segment with the pairs of its buffer, as one segment or as two.
template <class K>
void WordTable<K>::write_anew(const Seen& segment, Buffer& buffer, bool in_halves) const {
  const HashRange range = segment.range;
  if (in_halves && !directory_.may_exceed(range.depth)) in_halves = false;  // keys hash alike
  if (in_halves && directory_.depth() == range.depth) directory_.grow(range.depth);
  alloc::Session session = pool_.allocator().session();
  const Entry first = make_part(session, segment, in_halves ? range.half(0) : range, &buffer);
  const Entry middle = in_halves ? make_part(session, segment, range.half(1), &buffer) : Entry{};
  const Reference overflow = overflow_reference(segment.entry);
  session.free(segment.entry.offset);
  if (overflow.offset != pm::kNull) session.free(overflow.offset);
  pm::on_step("cceh: a segment is about to be written anew");
  in_halves ? directory_.commit_change(session, range, first, middle)
            : directory_.commit_replacement(session, range, first);
  buffers_->leave(buffer);
}

// --- Opening ---

/// Opens the write buffers of a table that has a log, or is to have one.
template <class K>
void WordTable<K>::open_buffers(const CcehOptions& options) {
  const std::uint64_t budget = buffer_budget(options);
  if (path_budget(options) != 0) directory_.open_copy(path_budget(options));
  if (!has_log(pool_, root_.log, budget != 0)) return;
  const typename Buffers::Parts parts{pool_, keys_, codec_, latches_, pairs_};
  auto buffers = std::make_unique<Buffers>(Homes{*this}, parts, options.technique);
  buffers->open(pm::load(root_.log), budget, &root_.numbers);
  buffers_ = std::move(buffers);
  buffers_->start_resumption(options.resume_in_background);
}

}  // namespace perdix::detail::index::cceh
