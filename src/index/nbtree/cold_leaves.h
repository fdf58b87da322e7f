// Instant opening: the index is in use before its leaves' DRAM sides are back.
//
// A leaf is *cold* until an operation needs it, and then *warm*: its block is read, entries that a
// crash left in flight are decided, and the position gets the leaf. Several threads may make the
// same leaf warm, and none waits for another: each works on a private copy of the key words, all
// come to the same result, and one of them puts its leaf in place.
//
// A position is *known* or not as yet. A cold position leads to the next one that is known; between
// the two lies a *cold range* of leaves, as the crash or the close has left them. A position
// becomes known when a thread puts it between these two, by a compare-and-swap of what the first
// one leads to. Its anchor is the one that follows in the list; or one that a signpost names
// (signposts.h), which is nearer to the leaf that is needed. A position becomes warm when the next
// one is known.
//
// A signpost is believed if its bound lies in the cold range, and the place that it names has that
// bound, is not free, and is not named in the ledger. Then the anchor is in the list (N8), and
// since its leaf is cold it stays there.
//
// What each does in PM may be late, when others work in the leaf already. So each change is a
// compare-and-swap from a word as it was while the leaf was cold, to a state that such a word does
// not leave again: pending -> live, or to dead. Frozen entries are left so, since another thread
// might freeze them again: the leaf is closing from the start, and replaced when it is written to.
//
// Thread-safe. The caller holds a guard.
#pragma once

#include <atomic>
#include <span>

#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "index/nbtree/entry.h"
#include "index/nbtree/entry_protocol.h"
#include "index/nbtree/leaf.h"
#include "index/nbtree/leaf_memory.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/signposts.h"
#include "index/nbtree/top_writer.h"

namespace perdix::detail::index::nbtree {

template <class K>
class ColdLeaves {
 public:
  using Key = View<K>;

  ColdLeaves(pool::PoolCore& pool, const EntryProtocol<K>& entries, LeafMemory<K>& memory,
             TopWriter<K>& writer, Signposts<K>& signposts, Ledger& ledger, Counts& counts)
      : pool_(pool),
        entries_(entries),
        keys_(entries.keys()),
        codec_(entries.values()),
        memory_(memory),
        writer_(writer),
        signposts_(signposts),
        ledger_(ledger),
        counts_(counts) {}

  /// The leaf of a position, warm. Null if it has been joined with its neighbour.
  Leaf<K>* leaf_of(Position<K>& at) {
    Leaf<K>* leaf = at.leaf.load(std::memory_order_seq_cst);
    return is_cold(leaf) ? warm(at, leaf) : leaf;
  }

  /// From a position whose bound is at or below the key, or only below it, through cold ranges to
  /// the last one of this kind: or to one before it that is not cold.
  Position<K>* approach(Position<K>& from, Key key, bool strictly_below);

 private:
  using Layout = EntryLayout<K>;

  Leaf<K>* warm(Position<K>& at, Leaf<K>* cold);
  Leaf<K>* warm_as(Position<K>& at, Leaf<K>& leaf);
  void decide_in_flight(Block& block, std::span<const Word> words, const BlockScan& found);
  void prefetch_cold(const Position<K>* at) const;
  pm::Offset offset_of(const Position<K>* at) const {
    return at == nullptr ? pm::kNull : pool().offset(&at->anchor());
  }
  Anchor* successor(const Position<K>& at, Leaf<K>* cold, pm::Offset offset) const;
  Anchor* by_signpost(const Position<K>& at, Key key, bool strictly_below) const;
  void make_known(Position<K>& at, Leaf<K>* cold, Anchor& anchor);

  pool::PoolCore& pool() const { return pool_; }
  const pm::Persister& pm() const { return pool_.pm(); }

  pool::PoolCore& pool_;
  const EntryProtocol<K>& entries_;
  Codec<K> keys_;
  ValueCodec codec_;
  LeafMemory<K>& memory_;
  TopWriter<K>& writer_;
  Signposts<K>& signposts_;
  Ledger& ledger_;
  Counts& counts_;
  std::atomic<unsigned> deciding_{0};  // threads that kill entries of cold leaves
};

}  // namespace perdix::detail::index::nbtree
