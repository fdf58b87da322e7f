// Frees all of an index that is being dropped, in steps of one commit each, so that it can begin
// again after a crash: first the strings of pairs, layer by layer from the youngest on, then the
// blocks. No other thread uses the index.
#pragma once

#include <bit>

#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "index/elimda/bits.h"
#include "index/elimda/collecting_log.h"
#include "index/elimda/elimda.h"
#include "pool/checked.h"

namespace perdix::detail::index::elimda {

template <class K>
class Destroyer {
 public:
  Destroyer(pool::PoolCore& pool, Root& root, std::uint64_t& word, Kind value_kind)
      : pool_(pool),
        root_(root),
        word_(word),
        shape_(shape_of(pool, root)),
        hash_(shape_.seed),
        keys_(pool),
        codec_(pool, value_kind),
        backup_(pool, root, shape_),
        logs_(pool, root, shape_),
        table_(pool, root, shape_) {}

  void run() {
    if (!Codec<K>::kInline || !codec_.is_inline()) free_strings();
    free_segments();
    free_chunks();
    if (pm::load(root_.log_area) != pm::kNull)
      free_by(root_.log_area, pm::kNull, logs_.area().offset);
    free_by(word_, pm::kNull, pool_.offset(&root_));
  }

 private:
  /// Not while its directory or its chunks are being freed: then the strings are gone.
  void free_strings() {
    if (freeing_blocks()) return;
    backup_.open();
    if (pm::load(root_.log_area) != pm::kNull) free_logs();
    for (BackupLog::Unit unit = 0; unit < backup_.units(); ++unit) free_unit(unit);
    table_.for_each_leader([&](std::uint64_t, Reference leader) {
      for (unsigned at = 0; at < shape_.buckets; ++at) free_bucket(leader.offset, at);
    });
  }

  bool freeing_blocks() const {
    const Reference at = table_.directory();
    if (at.offset == pm::kNull) return true;
    for (std::uint64_t i = 0; i < std::uint64_t{1} << at.depth;) {
      const auto leader = leader_at(at, i);
      if (leader.offset == pm::kNull) return true;
      i += std::uint64_t{1} << (at.depth - leader.depth);
    }
    return false;
  }

  /// A log that was copied under its number owns nothing (E5).
  void free_logs() {
    logs_.open();
    const LogSet& logs = *logs_.set();
    for (BackupLog::Unit unit = 0; unit < backup_.units(); ++unit) {
      const auto last = UnitWord::unpack(pm::load(backup_.words(unit)[shape_.unit_words() - 1]));
      if (last.pack() == 0 || !logs.has(last.log)) continue;
      const CollectingLog log = logs.named(last.log);
      if (LogWord::unpack(pm::load(log.word())).number == last.number) log.reset();
    }
    logs.for_each([&](CollectingLog log) {
      for (unsigned i = 0; i < log.line().count; ++i) {
        if (log.dead(i)) continue;
        const std::uint64_t bit = CollectingLog::dead_bit(i);
        kill({&log.dead_word(i), bit, bit}, log.pairs()[i]);
      }
    });
  }

  void free_unit(BackupLog::Unit unit) {
    for (unsigned i = 0; i < shape_.unit_pairs; ++i) {
      const BackupRef ref = backup_.ref(unit, i);
      if (!backup_.counts(ref)) continue;
      const pm::Change change{&backup_.word(ref), backup_.bit(ref), 0};
      const Pair& pair = backup_.pair(ref);
      kill(change, is_in_table(pair) ? Pair{0, 0} : pair);
    }
  }

  /// Whether the table has the same pair: then the strings are the table's (E7).
  bool is_in_table(const Pair& pair) const {
    const KeyHash hash = hash_(keys_.view(pm::load(pair.key)));
    const Reference at = table_.directory();
    Reference segment;
    for (std::uint64_t i = 0; i <= hash.prefix(at.depth);) {
      segment = leader_at(at, i);
      i += std::uint64_t{1} << (at.depth - segment.depth);
    }
    const unsigned bucket = hash.bucket(shape_.buckets);
    const Pair* pairs = table_.pairs(segment.offset, bucket);
    for (unsigned slot = 0; slot < shape_.p_pairs; ++slot) {
      if (table_.live(segment.offset, bucket, slot) && pairs[slot].key == pair.key &&
          pairs[slot].value == pair.value)
        return true;
    }
    return false;
  }

  void free_bucket(pm::Offset segment, unsigned at) {
    for (unsigned slot = 0; slot < shape_.p_pairs; ++slot) {
      if (!table_.live(segment, at, slot)) continue;
      kill({&table_.live_word(segment, at, slot), PmTable::live_bit(slot), 0},
           table_.pairs(segment, at)[slot]);
    }
  }

  /// Has a pair not count any more, and frees its strings.
  void kill(const pm::Change& change, const Pair& pair) {
    alloc::Session session = pool_.allocator().session();
    Codec<K>::free(session, pair.key);
    codec_.free(session, pair.value);
    session.commit(change);
  }

  /// A leader whose segment is gone keeps its depth, so that the next one is found.
  void free_segments() {
    const Reference at = table_.directory();
    if (at.offset == pm::kNull) return;
    for (std::uint64_t i = 0; i < std::uint64_t{1} << at.depth;) {
      const Reference leader = leader_at(at, i);
      if (leader.offset != pm::kNull)
        free_by(entries(at)[i], Reference{pm::kNull, leader.depth + 64}.pack(), leader.offset);
      i += std::uint64_t{1} << (at.depth - leader.depth);
    }
    free_by(root_.directory, pm::kNull, at.offset);
  }

  void free_chunks() {
    for (pm::Offset at = pm::load(root_.chunks); at != pm::kNull; at = pm::load(root_.chunks)) {
      if (!pool_.contains(at, kChunkBytes) || !marked<ChunkHead>(at))
        pool::throw_corrupt(pool_, "a chunk", at);
      free_by(root_.chunks, pm::load(pool_.at<ChunkHead>(at)->next), at);
    }
  }

  template <class Head>
  bool marked(pm::Offset at) const {
    return pm::load(pool_.at<Head>(at)->magic) == Head::kMagic;
  }

  std::uint64_t* entries(Reference directory) const {
    return pool_.at<std::uint64_t>(directory.offset);
  }
  /// With 64 added to its depth if its segment was freed.
  Reference leader_at(Reference directory, std::uint64_t number) const {
    if (directory.depth > PmTable::kMaxDepth ||
        !pool_.contains(directory.offset, std::uint64_t{8} << directory.depth))
      pool::throw_corrupt(pool_, "a directory", directory.offset);
    Reference leader = Reference::unpack(pm::load(entries(directory)[number]));
    if (leader.offset == pm::kNull) leader.depth -= 64;
    const bool there =
        leader.offset == pm::kNull || (leader.offset % pm::kLineSize == 0 &&
                                       pool_.contains(leader.offset, shape_.segment_bytes()) &&
                                       marked<SegmentHead>(leader.offset));
    if (leader.depth > directory.depth || !there)
      pool::throw_corrupt(pool_, "a leader", leader.offset);
    return leader;
  }

  /// Frees a block by the store that makes it unreachable.
  void free_by(std::uint64_t& word, std::uint64_t value, pm::Offset block) {
    alloc::Session session = pool_.allocator().session();
    session.free(block);
    session.commit(pm::set_word(word, value));
  }

  pool::PoolCore& pool_;
  Root& root_;
  std::uint64_t& word_;
  const Shape shape_;
  const Hasher hash_;
  const Codec<K> keys_;
  const ValueCodec codec_;
  BackupLog backup_;
  CollectingLogs logs_;
  PmTable table_;
};

template <class K>
void WordIndex<K>::destroy(pool::PoolCore& pool, std::uint64_t& word, Kind value_kind) {
  const pm::Offset offset = pm::load(word);
  if (offset == pm::kNull) return;
  if (!pool.contains(offset, sizeof(Root)) || offset % alignof(Root) != 0)
    pool::throw_corrupt(pool, "a root", offset);
  Destroyer<K>(pool, *pool.at<Root>(offset), word, value_kind).run();
}

}  // namespace perdix::detail::index::elimda
