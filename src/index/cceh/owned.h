// Which blocks a table owns (layout.h, H8), as index/common/owned.h has it: segment by segment the
// strings of its pairs, its overflow, and the segment. No other thread changes the table.
//
// When it is dropped, a leader without a segment keeps its depth, so that the next one is found.
// Pairs of a segment that are only in the log are first written to the segment, into any of its
// slots. So all strings are reached from segments, and the log is freed after these.
#pragma once

#include <algorithm>
#include <functional>
#include <span>

#include "index/cceh/directory.h"
#include "index/cceh/segments.h"
#include "index/common/owned_log.h"
#include "pool/checked.h"

namespace perdix::detail::index::cceh {

/// Tells of the strings of the pairs that a segment has in a buffer, or of a table that is being
/// dropped, moves those that it has in the log into the segment.
using WalkBuffered = std::function<void(const Entry& segment, HashRange range)>;

/// Tells of the strings of pairs that count.
template <class K>
void walk_pairs(const Segments<K>& segments, std::span<Pair> pairs, HashRange range, Owned& owned) {
  for (Pair& pair : pairs) {
    const Word key = pm::load(pair.key);
    if (!segments.counts(key, range)) continue;
    owned.release(pm::set_word(pair.key, 0),
                  blobs_of<K>(segments.values(), key, pm::load(pair.value)));
  }
}

/// Tells of all that a segment owns.
template <class K>
void walk_segment(const Segments<K>& segments, const Entry& leader, HashRange range,
                  const WalkBuffered& walk_buffered, Owned& owned) {
  pool::PoolCore& pool = segments.pool();
  auto& head = pool::checked_by_magic<SegmentHead>(pool, leader.offset(), "a segment",
                                                   SegmentHead::kMagic, pm::kLineSize);
  if (!pool.contains(leader.offset(), segments.shape().segment_bytes()))
    pool::throw_corrupt(pool, "a segment", leader.offset());
  const bool has_strings = owns_blobs<K>(segments.values());
  if (has_strings) {
    walk_buffered(leader, range);
    walk_pairs(segments, segments.all_slots_of(leader), range, owned);
  }
  const Reference overflow = Reference::unpack(pm::load(head.overflow));
  if (overflow.offset == pm::kNull) return;
  const std::span<Pair> pairs = checked_overflow(pool, overflow);
  if (has_strings) walk_pairs(segments, pairs, range, owned);
  owned.release(pm::set_word(head.overflow, 0),
                OwnedBlocks(overflow.offset, pairs.size_bytes(), "an overflow"));
}

/// Tells of the segments and the directory, which is there. Leaders alone say which segments there
/// are (H2), also where a crash has interrupted a change.
template <class K>
void walk_directory(const Segments<K>& segments, const WalkBuffered& walk_buffered, Owned& owned) {
  pool::PoolCore& pool = segments.pool();
  std::uint64_t& word = segments.root().directory;
  const Reference at = Reference::unpack(pm::load(word));
  if (at.log > Directory::kMaxDepth || at.offset % sizeof(std::uint64_t) != 0 ||
      !pool.contains(at.offset, sizeof(std::uint64_t) << at.log))
    pool::throw_corrupt(pool, "a directory", at.offset);
  auto* const entries = pool.at<std::uint64_t>(at.offset);
  for (std::uint64_t i = 0; i < std::uint64_t{1} << at.log;) {
    const Entry leader = Entry::unpack(pm::load(entries[i]));
    if (leader.depth() > at.log) pool::throw_corrupt(pool, "a segment", leader.offset());
    const unsigned further = at.log - leader.depth();
    if (leader.offset() != pm::kNull) {
      walk_segment(segments, leader, {i >> further, leader.depth()}, walk_buffered, owned);
      owned.release(pm::set_word(entries[i], Entry{pm::kNull, leader.depth()}.pack()),
                    OwnedBlocks(leader.offset(), segments.shape().segment_bytes(), "a segment"));
    }
    i += std::uint64_t{1} << further;
  }
  owned.release(pm::set_word(word, 0),
                OwnedBlocks(at.offset, sizeof(std::uint64_t) << at.log, "a directory"));
}

/// Tells of all blocks of the table whose root block `word` leads to. Throws corrupt.
template <class K>
void walk(const Segments<K>& segments, std::uint64_t& word, const WalkBuffered& walk_buffered,
          Owned& owned) {
  Root& root = segments.root();
  if (pm::load(root.zero.key) != 0) {
    owned.release(pm::set_word(root.zero.key, 0),
                  OwnedBlocks().add_value(segments.values(), pm::load(root.zero.value)));
  }
  if (pm::load(root.directory) != 0) walk_directory(segments, walk_buffered, owned);
  walk_log(segments.pool(), root.log, owned);
  owned.release(pm::set_word(word, pm::kNull),
                OwnedBlocks(segments.pool().offset(&root), sizeof(Root), "a root"));
}

/// Moves the pairs of a segment's chain into slots.
template <class K>
void take_from_log(const Segments<K>& segments, DroppedLog& log, const Entry& segment,
                   HashRange range, Owned& owned) {
  const pm::Persister& pm = segments.pool().pm();
  const std::span<Pair> slots = segments.all_slots_of(segment);
  const wal::Owner owner = pm::load(segments.head_of(segment).number);
  const auto has = [&](Word key) {
    return segments.counts(key, range) &&
           std::ranges::any_of(slots, [&](const Pair& slot) { return pm::load(slot.key) == key; });
  };
  const auto fill = [&](const DroppedLog::Pairs& pairs) {
    auto slot = slots.begin();
    for (const auto& [key, value] : pairs) {
      while (slot != slots.end() && segments.counts(pm::load(slot->key), range)) ++slot;
      if (slot == slots.end()) pool::throw_corrupt(segments.pool(), "the log of a segment", owner);
      pm.store(slot->value, value);
      pm.store(slot->key, key);
      pm.flush(&slot->key, sizeof slot->key);  // the same line; fenced below
    }
    pm.fence();
  };
  log.move_pairs(
      owner, has, [&] { walk_pairs(segments, slots, range, owned); }, fill);
}

template <class K>
void destroy(pool::PoolCore& pool, std::uint64_t& word, Kind value_kind) {
  if (pm::load(word) == pm::kNull) return;
  Root& root = checked_root(pool, pm::load(word));
  const Segments<K> segments(pool, root, shape_of(pool, root), value_kind);
  // Not once the directory is gone: only a part of the log may be left.
  const bool logged = owns_blobs<K>(segments.values()) && pm::load(root.directory) != 0;
  DroppedLog log(pool, logged ? pm::load(root.log) : pm::kNull);
  DroppedBlocks owned(pool.allocator());
  walk<K>(
      segments, word,
      [&](const Entry& segment, HashRange range) {
        take_from_log(segments, log, segment, range, owned);
      },
      owned);
}

}  // namespace perdix::detail::index::cceh
