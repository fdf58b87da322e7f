// What keeps a tree going: all of it in DRAM, and its ledger. Calls that only read change this,
// too.
//
// Invariants:
//   1. A call that only reads changes no pair. It may make a leaf warm that an opening left cold,
//   complete a modification that another thread has begun, persist what another thread has made
//   visible, keep the order of a leaf, count, and free blocks and memory that the index does not
//   reach. Afterwards the index says what it said before.
//   2. A part uses only parts above it, and goes before them. So the thread that brings the leaves
//   back goes first.
//
// Thread-safe, but for building the top layer.
#pragma once

#include <perdix/types.h>

#include "epoch/reclaimer.h"
#include "index/nbtree/cold_leaves.h"
#include "index/nbtree/counts.h"
#include "index/nbtree/entry_protocol.h"
#include "index/nbtree/joins.h"
#include "index/nbtree/leaf_memory.h"
#include "index/nbtree/leaf_scanner.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/locator.h"
#include "index/nbtree/metadata_copies.h"
#include "index/nbtree/reserve.h"
#include "index/nbtree/resumer.h"
#include "index/nbtree/smo.h"
#include "index/nbtree/top.h"

namespace perdix::detail::index::nbtree {

template <class K>
struct Upkeep {
  Upkeep(pool::PoolCore& pool, Root& root, const EntryProtocol<K>& entries,
         const MetadataCopies& copies, const IndexOptions& options)
      : memory(pool, options.scan_budget),
        drain{pool.reclaimer()},
        positions(memory),
        top(
            memory.arena(), pool.reclaimer(),
            [](void* position, void* owner) {
              static_cast<LeafMemory<K>*>(owner)->release(static_cast<Position<K>*>(position));
            },
            [](void* leaf, void* owner) {
              static_cast<LeafMemory<K>*>(owner)->release(static_cast<Leaf<K>*>(leaf));
            },
            &memory),
        ledger(pool, root),
        reserve(pool, ledger, copies),
        cold(pool, entries, memory, copies, ledger, counts),
        structure(pool, entries, memory, copies, top, ledger, reserve, cold, counts),
        locator(top, cold, structure),
        joins(root.anchors.data(), structure, locator, cold),
        scanner(entries, memory),
        resumer(pool, ledger, top, cold, locator) {}

  Counts counts;
  LeafMemory<K> memory;
  epoch::DrainFirst drain;  // what was retired comes back to the memory before that goes
  PositionList<K> positions;
  Top<K> top;
  Ledger ledger;
  Reserve reserve;
  ColdLeaves<K> cold;
  Structure<K> structure;
  Locator<K> locator;
  Joins<K> joins;
  LeafScanner<K> scanner;
  Resumer<K> resumer;
};

}  // namespace perdix::detail::index::nbtree
