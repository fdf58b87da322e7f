// Frees all of an index that is being dropped, in steps of one commit each, so that it can begin
// again after a crash: first the strings of pairs, layer by layer from the youngest on, then the
// blocks. No other thread uses the index.
#pragma once

#include "alloc/session.h"
#include "index/elimda/shape.h"
#include "index/elimda/store.h"
#include "pool/checked.h"

namespace perdix::detail::index::elimda {

template <class K>
class Destroyer {
 public:
  /// `word` refers to the root of the index, whose values are of that kind. Throws corrupt.
  Destroyer(pool::PoolCore& pool, std::uint64_t& word, Kind value_kind)
      : store_(pool, root_at(pool, pm::load(word)), value_kind, 16), word_(word) {}

  void run() {
    if (!store_.words.all_inline()) free_strings();
    free_segments();
    free_chunks();
    if (pm::load(store_.root.log_area) != pm::kNull)
      free_by(store_.root.log_area, pm::kNull, store_.logs.area().offset);
    free_by(word_, pm::kNull, store_.pool.offset(&store_.root));
  }

 private:
  /// Not while its directory or its chunks are being freed: then the strings are gone.
  void free_strings() {
    if (freeing_blocks()) return;
    store_.backup.open();
    if (pm::load(store_.root.log_area) != pm::kNull) free_logs();
    for (BackupLog::Unit unit = 0; unit < store_.backup.units(); ++unit) free_unit(unit);
    store_.table.for_each_leader([&](std::uint64_t, Reference leader) {
      for (unsigned at = 0; at < store_.shape.buckets; ++at) free_bucket(leader.offset, at);
    });
  }

  bool freeing_blocks() const {
    const Reference at = store_.table.directory();
    if (at.offset == pm::kNull) return true;
    for (std::uint64_t i = 0; i < std::uint64_t{1} << at.depth;) {
      const auto leader = leader_at(at, i);
      if (leader.offset == pm::kNull) return true;
      i += std::uint64_t{1} << (at.depth - leader.depth);
    }
    return false;
  }

  void free_logs() {
    store_.logs.open();
    const LogSet& logs = *store_.logs.set();
    store_.backup.finish_copies(logs);
    logs.for_each([&](CollectingLog log) {
      for (unsigned i = 0; i < log.line().count; ++i) {
        if (log.dead(i)) continue;
        const std::uint64_t bit = CollectingLog::dead_bit(i);
        kill({&log.dead_word(i), bit, bit}, log.pairs()[i]);
      }
    });
  }

  void free_unit(BackupLog::Unit unit) {
    store_.backup.for_each_pair(unit, [&](BackupRef ref) {
      const Pair& pair = store_.backup.pair(ref);
      kill(store_.backup.killing(ref), is_in_table(pair) ? Pair{0, 0} : pair);
    });
  }

  /// Whether the table has the same pair: then the strings are the table's (E7).
  bool is_in_table(const Pair& pair) const {
    const KeyHash hash = store_.words.hash_of_word(pm::load(pair.key));
    const Reference at = store_.table.directory();
    Reference segment;
    for (std::uint64_t i = 0; i <= hash.prefix(at.depth);) {
      segment = leader_at(at, i);
      i += std::uint64_t{1} << (at.depth - segment.depth);
    }
    const unsigned bucket = hash.bucket(store_.shape.buckets);
    const Pair* pairs = store_.table.pairs(segment.offset, bucket);
    for (unsigned slot = 0; slot < store_.shape.p_pairs; ++slot) {
      if (store_.table.live(segment.offset, bucket, slot) && pairs[slot].key == pair.key &&
          pairs[slot].value == pair.value)
        return true;
    }
    return false;
  }

  void free_bucket(pm::Offset segment, unsigned at) {
    for (unsigned slot = 0; slot < store_.shape.p_pairs; ++slot) {
      if (!store_.table.live(segment, at, slot)) continue;
      kill({&store_.table.live_word(segment, at, slot), PmTable::live_bit(slot), 0},
           store_.table.pairs(segment, at)[slot]);
    }
  }

  /// Has a pair not count any more, and frees its strings.
  void kill(const pm::Change& change, const Pair& pair) {
    alloc::Session session = store_.pool.allocator().session();
    store_.words.free(session, pair);
    session.commit(change);
  }

  /// A leader whose segment is gone keeps its depth, so that the next one is found.
  void free_segments() {
    const Reference at = store_.table.directory();
    if (at.offset == pm::kNull) return;
    for (std::uint64_t i = 0; i < std::uint64_t{1} << at.depth;) {
      const Reference leader = leader_at(at, i);
      if (leader.offset != pm::kNull)
        free_by(entries(at)[i], Reference{pm::kNull, leader.depth + 64}.pack(), leader.offset);
      i += std::uint64_t{1} << (at.depth - leader.depth);
    }
    free_by(store_.root.directory, pm::kNull, at.offset);
  }

  void free_chunks() {
    for (pm::Offset at = pm::load(store_.root.chunks); at != pm::kNull;
         at = pm::load(store_.root.chunks)) {
      if (!store_.pool.contains(at, kChunkBytes) || !marked<ChunkHead>(at))
        pool::throw_corrupt(store_.pool, "a chunk", at);
      free_by(store_.root.chunks, pm::load(store_.pool.template at<ChunkHead>(at)->next), at);
    }
  }

  template <class Head>
  bool marked(pm::Offset at) const {
    return pm::load(store_.pool.template at<Head>(at)->magic) == Head::kMagic;
  }

  std::uint64_t* entries(Reference directory) const {
    return store_.pool.template at<std::uint64_t>(directory.offset);
  }
  /// With 64 added to its depth if its segment was freed.
  Reference leader_at(Reference directory, std::uint64_t number) const {
    if (directory.depth > PmTable::kMaxDepth ||
        !store_.pool.contains(directory.offset, std::uint64_t{8} << directory.depth))
      pool::throw_corrupt(store_.pool, "a directory", directory.offset);
    Reference leader = Reference::unpack(pm::load(entries(directory)[number]));
    if (leader.offset == pm::kNull) leader.depth -= 64;
    const bool there = leader.offset == pm::kNull ||
                       (leader.offset % pm::kLineSize == 0 &&
                        store_.pool.contains(leader.offset, store_.shape.segment_bytes()) &&
                        marked<SegmentHead>(leader.offset));
    if (leader.depth > directory.depth || !there)
      pool::throw_corrupt(store_.pool, "a leader", leader.offset);
    return leader;
  }

  /// Frees a block by the store that makes it unreachable.
  void free_by(std::uint64_t& word, std::uint64_t value, pm::Offset block) {
    alloc::Session session = store_.pool.allocator().session();
    session.free(block);
    session.commit(pm::set_word(word, value));
  }

  Store<K> store_;
  std::uint64_t& word_;
};

}  // namespace perdix::detail::index::elimda
