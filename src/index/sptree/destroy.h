// Frees all of an index that is being dropped, in steps of one commit each, so that it can begin
// again after a crash. No other thread uses the index.
#pragma once

#include <memory>
#include <optional>

#include "alloc/session.h"
#include "index/common/value_codec.h"
#include "index/fastfair/fastfair.h"
#include "index/sptree/leaf_at.h"
#include "index/sptree/replay.h"
#include "pool/pool_core.h"
#include "wal/log.h"

namespace perdix::detail::index::sptree {

/// Frees the strings of a leaf's pairs, and those of its chain in the log. Needs no space: the
/// chain's pairs get slots of the leaf once its own are free, and its END has room.
template <class K>
class LeafStrings {
 public:
  LeafStrings(pool::PoolCore& pool, const ValueCodec& values, wal::Log* log)
      : pool_(pool), keys_(pool), values_(values), log_(log) {
    if (log_ != nullptr) log_->add(chain_);
  }

  void free(Leaf& leaf) {
    const auto survivor = log_ == nullptr ? std::nullopt : survivor_of(pool_, keys_, *log_, leaf);
    if (survivor) {
      // A pair of a stale chain may be in the leaf, too, so the chain must end first. Else it names
      // what the leaf hasn't, but for slots that are erased; the leaf may lack room for its pairs.
      if (!survivor->replay.stale) free_slots(leaf, slots_of(leaf) - survivor->replay.erased);
      merge(leaf, *survivor);
    }
    free_slots(leaf, slots_of(leaf));
  }

 private:
  void free_slots(Leaf& leaf, SlotSet slots) {
    for (const unsigned slot : slots) {
      const Pair& pair = pair_at(leaf, slot);
      const std::uint64_t bit = std::uint64_t{1} << slot % 64;
      std::uint64_t& bitmap = word_of_slot(leaf, slot);
      alloc::Session session = pool_.allocator().session();
      Codec<K>::free(session, pm::load(pair.key));
      values_.free(session, pm::load(pair.value));
      session.commit_when(bitmap, bit, 0);
      session.log();
      pool_.pm().publish(bitmap, pm::load(bitmap) & ~bit);  // the commit
      session.finish();
    }
  }

  /// As NodeBuffers::merge() does. A crash between the two commits leaves a stale chain.
  void merge(Leaf& leaf, const Survivor& survivor) {
    const Replay& chain = survivor.replay;
    const SlotSet before = slots_of(leaf);
    if (before.count() + chain.pairs.size() > kLeafPairs) throw_too_much(leaf);
    const wal::Log::Adoption adoption = log_->prepare_adoption(survivor.owner, survivor.head);
    SlotSet slots = before;
    for (const auto& [key, value] : chain.pairs) {
      const unsigned slot = free_slot(slots, Codec<K>::hash16_of_word(key));
      pool_.pm().store(pair_at(leaf, slot).key, key);
      pool_.pm().store(pair_at(leaf, slot).value, value);
      slots.add(slot);
    }
    flush_pairs(pool_.pm(), leaf, slots - before);
    pool_.pm().fence();  // the pairs are durable before their bits can be
    publish_slots(pool_.pm(), leaf, slots - chain.erased);  // before the END
    log_->adopt(chain_, adoption);
    log_->end(chain_);
  }

  [[noreturn]] void throw_too_much(const Leaf& leaf) const {
    throw_bad_leaf(pool_, pool_.offset(&leaf), "has too much in the log");
  }

  pool::PoolCore& pool_;
  const Codec<K> keys_;
  const ValueCodec& values_;
  wal::Log* log_;
  wal::Chain chain_;
};

/// Frees all blocks of an index, and clears its root word.
///
/// The backup first, which leads to leaves. Then pairs, one commit each, and their leaf: so every
/// crash point leaves a list that this can go on with. Then the log, which speaks of leaves, and
/// the root block.
template <class K>
void destroy(pool::PoolCore& pool, std::uint64_t& root_word, Kind value_kind) {
  if (pm::load(root_word) == pm::kNull) return;
  const auto& pm = pool.pm();
  Root& root = root_at(pool, pm::load(root_word));
  if (pm::load(root.backup) != pm::kNull)
    fastfair::WordTree<K>::destroy(pool, root.backup, Kind::u64);
  std::unique_ptr<wal::Log> log;
  const ValueCodec values(pool, value_kind);
  const bool has_strings = !Codec<K>::kInline || !values.is_inline();
  // Not once the leaves are gone: only a part of the log may be left.
  if (has_strings && pm::load(root.first) != pm::kNull && pm::load(root.log) != pm::kNull)
    log = std::make_unique<wal::Log>(pool, pm::load(root.log), wal::Log::Limits{~std::uint64_t{0}});
  {
    LeafStrings<K> strings(pool, values, log.get());
    for (pm::Offset offset = pm::load(root.first); offset != pm::kNull;
         offset = pm::load(root.first)) {
      Leaf& leaf = leaf_at(pool, offset);
      if (has_strings) strings.free(leaf);
      alloc::Session session = pool.allocator().session();
      session.free(offset);
      Codec<K>::free(session, pm::load(leaf.low));
      const pm::Offset next = successor_of(leaf);
      session.commit_when(root.first, ~std::uint64_t{0}, next);
      session.log();
      pm.publish(root.first, next);  // the commit
      session.finish();
    }
  }
  log.reset();
  if (pm::load(root.log) != pm::kNull) wal::destroy(pool, root.log);
  alloc::Session session = pool.allocator().session();
  session.free(pool.offset(&root));
  session.commit_when(root_word, ~std::uint64_t{0}, pm::kNull);
  session.log();
  pm.publish(root_word, pm::kNull);  // the commit
  session.finish();
}

}  // namespace perdix::detail::index::sptree
