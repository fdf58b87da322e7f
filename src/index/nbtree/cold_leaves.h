// Instant opening: the index is in use before its leaves' DRAM sides are back.
//
// A leaf is *cold* until an operation needs it, and then *warm*: its block is read, entries that a
// crash left in flight are decided, and the position gets the leaf. Several threads may make the
// same leaf warm, and none waits for another: each works on a private copy of the key words, all
// come to the same result, and one of them puts its leaf in place.
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

namespace perdix::detail::index::nbtree {

template <class K>
class ColdLeaves {
 public:
  ColdLeaves(pool::PoolCore& pool, const EntryProtocol<K>& entries, LeafMemory<K>& memory,
             Ledger& ledger, Counts& counts)
      : pool_(pool),
        entries_(entries),
        keys_(entries.keys()),
        codec_(entries.values()),
        memory_(memory),
        ledger_(ledger),
        counts_(counts) {}

  /// The leaf of a position, warm. Null if it has been joined with its neighbour.
  Leaf<K>* leaf_of(Position<K>& at) {
    Leaf<K>* leaf = at.leaf.load(std::memory_order_seq_cst);
    return is_cold(leaf) ? warm(at, next_of_cold(leaf)) : leaf;
  }

 private:
  using Key = View<K>;
  using Layout = EntryLayout<K>;

  Leaf<K>* warm(Position<K>& at, Position<K>* next);
  Leaf<K>* warm_as(Position<K>& at, Leaf<K>& leaf);
  void decide_in_flight(Block& block, std::span<const Word> words, const BlockScan& found);
  void prefetch_cold(const Position<K>* at) const;

  pool::PoolCore& pool() const { return pool_; }
  const pm::Persister& pm() const { return pool_.pm(); }

  pool::PoolCore& pool_;
  const EntryProtocol<K>& entries_;
  Codec<K> keys_;
  ValueCodec codec_;
  LeafMemory<K>& memory_;
  Ledger& ledger_;
  Counts& counts_;
  std::atomic<unsigned> deciding_{0};  // threads that kill entries of cold leaves
};

}  // namespace perdix::detail::index::nbtree
