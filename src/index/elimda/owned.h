// Which blocks an index owns (E8), by the rules of index/common/owned.h: first the strings of
// pairs, layer by layer from the youngest on, then the blocks that the pairs lie in.
#pragma once

#include <algorithm>

#include "index/common/owned.h"
#include "index/elimda/store.h"

namespace perdix::detail::index::elimda {

/// One walk. Writers are idle, and the caller is in an epoch::Guard or alone.
template <class K>
class BlockWalk {
 public:
  /// The logs are open, unless they hold no strings. Either all segments are warm, or this is a
  /// drop: so copies (E7) are met in a drop only.
  BlockWalk(const Store<K>& store, std::uint64_t& root_word, Owned& owned)
      : store_(store), root_word_(root_word), owned_(owned) {}

  /// Throws corrupt.
  void run() const {
    if (!store_.words.all_inline()) {
      walk_logs();
      walk_backup();
    }
    walk_segments();
    walk_chunks();
    walk_log_area();
    release(root_word_, pm::kNull, {store_.pool.offset(&store_.root), sizeof(Root), "a root"});
  }

 private:
  void release(std::uint64_t& word, std::uint64_t value, const OwnedBlocks& blocks) const {
    owned_.release(pm::set_word(word, value), blocks);
  }
  /// Of a pair, which the change has not count any more.
  void release_strings(const pm::Change& change, const Pair& pair) const {
    owned_.release(change,
                   blobs_of<K>(store_.words.values(), pm::load(pair.key), pm::load(pair.value)));
  }

  void walk_logs() const {
    const LogSet* logs = store_.logs.set();
    if (logs == nullptr) return;
    logs->for_each([&](CollectingLog log) {
      for (unsigned i = 0; i < log.line().count; ++i) {
        const std::uint64_t bit = CollectingLog::dead_bit(i);
        if (!log.dead(i)) release_strings({&log.dead_word(i), bit, bit}, log.pairs()[i]);
      }
    });
  }

  void walk_backup() const {
    for (BackupLog::Unit unit = 0; unit < store_.backup.units(); ++unit) {
      if (store_.backup.gone(unit)) continue;
      store_.backup.for_each_pair(unit, [&](BackupRef ref) {
        const Pair& pair = store_.backup.pair(ref);
        if (owned_.drops() && is_in_table(pair))
          owned_.release(store_.backup.killing(ref), {});
        else
          release_strings(store_.backup.killing(ref), pair);
      });
    }
  }

  /// Whether the table has the same pair: then the strings are the table's (E7).
  bool is_in_table(const Pair& pair) const {
    const KeyHash hash = store_.words.hash_of_word(pm::load(pair.key));
    const pm::Offset segment = store_.table.leader_of(hash).offset;
    const unsigned bucket = hash.bucket(store_.shape.buckets);
    const Pair* pairs = store_.table.pairs(segment, bucket);
    for (unsigned slot = 0; slot < store_.shape.p_pairs; ++slot) {
      if (store_.table.live(segment, bucket, slot) && pairs[slot].key == pair.key &&
          pairs[slot].value == pair.value)
        return true;
    }
    return false;
  }

  /// A leader whose segment is gone keeps its depth, so that the next one is found.
  void walk_segments() const {
    const Reference directory = store_.table.directory();
    if (directory.offset == pm::kNull) return;  // a drop that was interrupted has freed it
    const auto walk_segment = [&](std::uint64_t, Reference leader, std::uint64_t& word) {
      if (leader.offset == pm::kNull) return;
      if (!store_.words.all_inline()) walk_strings_of(leader.offset);
      release(word, PmTable::gone(leader).pack(),
              {leader.offset, store_.shape.segment_bytes(), "a segment"});
    };
    store_.table.for_each_remaining_leader(walk_segment);
    release(store_.root.directory, pm::kNull,
            {directory.offset, std::uint64_t{8} << directory.depth, "a directory"});
  }

  void walk_strings_of(pm::Offset segment) const {
    for (unsigned bucket = 0; bucket < store_.shape.buckets; ++bucket) {
      for (unsigned slot = 0; slot < store_.shape.p_pairs; ++slot) {
        if (!store_.table.live(segment, bucket, slot)) continue;
        release_strings(
            {&store_.table.live_word(segment, bucket, slot), PmTable::live_bit(slot), 0},
            store_.table.pairs(segment, bucket)[slot]);
      }
    }
  }

  void walk_chunks() const {
    const ChunkLists& lists = store_.backup.lists();
    const unsigned depth = lists.depth();
    for (Region region = 1; region < 2u << depth; ++region) {
      walk_list(store_.pool, lists.head(region), "a chunk", owned_, [&](pm::Offset at) {
        return ListStep{store_.backup.next_chunk(at), {at, kChunkBytes, "a chunk"}};
      });
    }
    if (depth == 0) return;
    release(store_.root.chunks, pm::kNull,
            {lists.table(), ChunkLists::table_bytes(depth), "the lists of chunks"});
  }

  void walk_log_area() const {
    const Reference area = store_.logs.area();
    if (area.offset == pm::kNull) return;
    const unsigned depth = std::min(area.depth, store_.shape.max_log_depth());
    release(store_.root.log_area, pm::kNull,
            {area.offset, store_.shape.log_area_bytes(1u << depth), "the collecting logs"});
  }

  const Store<K>& store_;
  std::uint64_t& root_word_;
  Owned& owned_;
};

/// Tells of the blocks of an index that is in use.
template <class K>
void walk(const Store<K>& store, Owned& owned) {
  std::uint64_t word = store.pool.offset(&store.root);  // a copy does: only a drop changes it
  BlockWalk<K>(store, word, owned).run();
}

}  // namespace perdix::detail::index::elimda
