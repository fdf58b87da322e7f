// Which blocks a tree owns (layout.h, L6), as index/common/owned.h has it: the backup, which leads
// to leaves; then leaf by leaf the strings of its pairs and the leaf; the log, which speaks of
// leaves; and the root block. No other thread changes the tree.
#pragma once

#include <functional>
#include <optional>

#include "index/common/owned_log.h"
#include "index/fastfair/owned.h"
#include "index/sptree/leaf_at.h"
#include "index/sptree/replay.h"

namespace perdix::detail::index::sptree {

/// Returns the slots of a leaf with pairs, and tells of the strings of the pairs that it has in a
/// buffer; or of a tree that is being dropped, moves those that it has in the log into the leaf.
using WalkBuffered = std::function<SlotSet(Leaf& leaf)>;

/// Tells of the strings of some of a leaf's pairs.
template <class K>
void walk_slots(const ValueCodec& values, Leaf& leaf, SlotSet slots, Owned& owned) {
  for (const unsigned slot : slots) {
    const Pair& pair = pair_at(leaf, slot);
    owned.release({&word_of_slot(leaf, slot), std::uint64_t{1} << slot % 64, 0},
                  blobs_of<K>(values, pm::load(pair.key), pm::load(pair.value)));
  }
}

/// Tells of all blocks of the index whose root block `word` leads to. Throws corrupt.
template <class K>
void walk(pool::PoolCore& pool, std::uint64_t& word, const ValueCodec& values,
          const WalkBuffered& walk_buffered, Owned& owned) {
  Root& root = root_at(pool, pm::load(word));
  if (pm::load(root.backup) != pm::kNull)
    fastfair::walk<K>(pool, root.backup, ValueCodec(pool, Kind::u64), {}, owned);
  walk_list(pool, root.first, "a leaf", owned, [&](pm::Offset at) {
    Leaf& leaf = leaf_at(pool, at);
    if (owns_blobs<K>(values)) walk_slots<K>(values, leaf, walk_buffered(leaf), owned);
    return ListStep{successor_of(leaf),
                    OwnedBlocks(at, sizeof(Leaf), "a leaf").add_key<K>(pm::load(leaf.low))};
  });
  walk_log(pool, root.log, owned);
  owned.release(pm::set_word(word, pm::kNull),
                OwnedBlocks(pool.offset(&root), sizeof(Root), "a root"));
}

/// Moves the pairs of a leaf's chain into the leaf. As NodeBuffers::merge() does, it needs no
/// space. A crash between the two commits leaves a stale chain.
template <class K>
void take_from_log(pool::PoolCore& pool, const ValueCodec& values, DroppedLog& log, Leaf& leaf,
                   Owned& owned) {
  const auto survivor =
      log.get() == nullptr ? std::nullopt : survivor_of(pool, Codec<K>(pool), *log.get(), leaf);
  if (!survivor) return;
  const Replay& chain = survivor->replay;
  // A pair of a stale chain may be in the leaf, too, so the chain must end first. Else it names
  // what the leaf hasn't, but for slots that are erased; the leaf may lack room for its pairs.
  if (!chain.stale) walk_slots<K>(values, leaf, slots_of(leaf) - chain.erased, owned);
  const SlotSet before = slots_of(leaf);
  if (before.count() + chain.pairs.size() > kLeafPairs)
    throw_bad_leaf(pool, pool.offset(&leaf), "has too much in the log");
  log.adopt(survivor->owner, survivor->head);
  SlotSet slots = before;
  for (const auto& [key, value] : chain.pairs) {
    const unsigned slot = free_slot(slots, Codec<K>::hash16_of_word(key));
    pool.pm().store(pair_at(leaf, slot).key, key);
    pool.pm().store(pair_at(leaf, slot).value, value);
    slots.add(slot);
  }
  flush_pairs(pool.pm(), leaf, slots - before);
  pool.pm().fence();  // the pairs are durable before their bits can be
  publish_slots(pool.pm(), leaf, slots - chain.erased);  // before the END
  log.end();
}

template <class K>
void destroy(pool::PoolCore& pool, std::uint64_t& word, Kind value_kind) {
  if (pm::load(word) == pm::kNull) return;
  Root& root = root_at(pool, pm::load(word));
  const ValueCodec values(pool, value_kind);
  // Not once the leaves are gone: only a part of the log may be left.
  const bool logged = owns_blobs<K>(values) && pm::load(root.first) != pm::kNull;
  DroppedLog log(pool, logged ? pm::load(root.log) : pm::kNull);
  DroppedBlocks owned(pool.allocator());
  walk<K>(
      pool, word, values,
      [&](Leaf& leaf) {
        take_from_log<K>(pool, values, log, leaf, owned);
        return slots_of(leaf);
      },
      owned);
}

}  // namespace perdix::detail::index::sptree
