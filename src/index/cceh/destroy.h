// Frees all of an index that is being dropped, in steps of one commit each, so that it can begin
// again after a crash: segment by segment the strings of its pairs, its overflow, and the segment;
// a leader without a segment keeps its depth, so that the next one is found. No other thread uses
// the index.
//
// Pairs of a segment that are only in the log are first written to the segment, into any of its
// slots. So all strings are reached from segments, and the log is freed after these.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "index/cceh/directory.h"
#include "index/cceh/recovery.h"
#include "index/cceh/segments.h"
#include "index/common/home_buffers.h"
#include "pool/checked.h"
#include "wal/log.h"

namespace perdix::detail::index::cceh {

template <class K>
class Destroyer {
 public:
  Destroyer(pool::PoolCore& pool, std::uint64_t& word, Kind value_kind)
      : pool_(pool),
        word_(word),
        root_(checked_root(pool, pm::load(word))),
        segments_(pool, root_, shape_of(pool, root_), value_kind) {
    // Not once the directory is gone: only a part of the log may be left.
    if (has_strings() && pm::load(root_.directory) != 0 && pm::load(root_.log) != pm::kNull) {
      log_.emplace(pool, pm::load(root_.log), wal::Log::Limits{~std::uint64_t{0}});
      log_->add(closing_);
    }
  }

  void run() {
    if (pm::load(root_.zero.key) != 0) {
      alloc::Session session = pool_.allocator().session();
      segments_.values().free(session, pm::load(root_.zero.value));
      session.commit(pm::set_word(root_.zero.key, 0));
    }
    if (pm::load(root_.directory) != 0) free_directory();
    log_.reset();
    if (pm::load(root_.log) != pm::kNull) wal::destroy(pool_, root_.log);
    free_by(word_, pm::kNull, pool_.offset(&root_));
  }

 private:
  bool has_strings() const { return !Codec<K>::kInline || !segments_.values().is_inline(); }

  void free_directory() {
    const Reference at = Reference::unpack(pm::load(root_.directory));
    if (at.log > Directory::kMaxDepth || at.offset % sizeof(std::uint64_t) != 0 ||
        !pool_.contains(at.offset, sizeof(std::uint64_t) << at.log))
      pool::throw_corrupt(pool_, "a directory", at.offset);
    auto* const entries = pool_.at<std::uint64_t>(at.offset);
    for (std::uint64_t i = 0; i < std::uint64_t{1} << at.log;) {
      const Entry leader = Entry::unpack(pm::load(entries[i]));
      if (leader.depth > at.log) pool::throw_corrupt(pool_, "a segment", leader.offset);
      const unsigned further = at.log - leader.depth;
      if (leader.offset != pm::kNull) {
        free_segment(leader, {i >> further, leader.depth});
        free_by(entries[i], Entry{pm::kNull, leader.depth, false, false}.pack(), leader.offset);
      }
      i += std::uint64_t{1} << further;
    }
    free_by(root_.directory, 0, at.offset);
  }

  /// All that a segment owns.
  void free_segment(const Entry& leader, HashRange range) {
    auto& head = pool::checked_by_magic<SegmentHead>(pool_, leader.offset, "a segment",
                                                     SegmentHead::kMagic, pm::kLineSize);
    const Shape& shape = segments_.shape();
    if (!pool_.contains(leader.offset, shape.segment_bytes()))
      pool::throw_corrupt(pool_, "a segment", leader.offset);
    const std::span<Pair> slots(segments_.slots_of(leader), shape.slots());
    if (log_) take_from_log(head, slots, range);
    free_pairs(slots, range);
    const Reference overflow = Reference::unpack(pm::load(head.overflow));
    if (overflow.offset == pm::kNull) return;
    free_pairs(checked_overflow(pool_, overflow), range);
    free_by(head.overflow, 0, overflow.offset);
  }

  /// Moves the pairs of the segment's chain into slots, if it has any. A crash before the END
  /// leaves pairs in both. Those that the segment had before go first, so that there is room,
  /// unless some of the chain are among them: these had their room before.
  void take_from_log(const SegmentHead& head, std::span<Pair> slots, HashRange range) {
    const wal::Owner owner = pm::load(head.number);
    const wal::Position position = log_->surviving(owner);
    if (position == 0) return;
    std::vector<std::pair<Word, Word>> pairs = read_chain(*log_, owner, position).pairs;
    const auto is_there = [&](const auto& pair) {
      return std::ranges::any_of(slots, [&](const Pair& slot) {
        return pm::load(slot.key) == pair.first && segments_.counts(pair.first, range);
      });
    };
    if (std::erase_if(pairs, is_there) == 0) free_pairs(slots, range);
    auto slot = slots.begin();
    for (const auto& [key, value] : pairs) {
      while (slot != slots.end() && segments_.counts(pm::load(slot->key), range)) ++slot;
      if (slot == slots.end()) pool::throw_corrupt(pool_, "the log of a segment", owner);
      pool_.pm().store(slot->value, value);
      pool_.pm().store(slot->key, key);
      pool_.pm().flush(&slot->key, sizeof slot->key);  // the same line; fenced below
    }
    pool_.pm().fence();  // before the END
    log_->adopt(closing_, owner, position);
    log_->end(closing_);
  }

  void free_pairs(std::span<Pair> pairs, HashRange range) {
    if (!has_strings()) return;
    for (Pair& pair : pairs) {
      const Word key = pm::load(pair.key);
      if (!segments_.counts(key, range)) continue;
      alloc::Session session = pool_.allocator().session();
      Codec<K>::free(session, key);
      segments_.values().free(session, pm::load(pair.value));
      session.commit(pm::set_word(pair.key, 0));
    }
  }

  /// Frees a block by the store that makes it unreachable.
  void free_by(std::uint64_t& word, std::uint64_t value, pm::Offset block) {
    alloc::Session session = pool_.allocator().session();
    session.free(block);
    session.commit(pm::set_word(word, value));
  }

  pool::PoolCore& pool_;
  std::uint64_t& word_;
  Root& root_;
  const Segments<K> segments_;
  std::optional<wal::Log> log_;
  wal::Chain closing_;
};

}  // namespace perdix::detail::index::cceh
