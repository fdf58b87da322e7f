// The upkeep of a tree: all of it in DRAM, and its ledger. Calls that only read change this,
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

#include <exception>

#include <perdix/papers/nbtree.h>
#include <perdix/types.h>

#include "epoch/reclaimer.h"
#include "index/nbtree/cold_leaves.h"
#include "index/nbtree/entry_protocol.h"
#include "index/nbtree/joins.h"
#include "index/nbtree/leaf_memory.h"
#include "index/nbtree/leaf_scanner.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/locator.h"
#include "index/nbtree/pair_writer.h"
#include "index/nbtree/reserve.h"
#include "index/nbtree/resumer.h"
#include "index/nbtree/signposts.h"
#include "index/nbtree/smo.h"
#include "index/nbtree/top.h"
#include "index/nbtree/top_writer.h"

namespace perdix::detail::index::nbtree {

template <class K>
struct Upkeep {
  Upkeep(pool::PoolCore& pool, Root& root_block, const EntryProtocol<K>& entries,
         const NbTreeOptions& options)
      : root(root_block),
        memory(pool, options.scan_budget),
        drain{pool.reclaimer()},
        positions(memory),
        top(memory.arena(), pool.reclaimer()),
        signposts(pool, top, root.signposts),
        top_writer(
            top, &signposts, memory.arena(), pool.reclaimer(),
            [](void* position, void* owner) {
              static_cast<LeafMemory<K>*>(owner)->release(static_cast<Position<K>*>(position));
            },
            [](void* leaf, void* owner) {
              static_cast<LeafMemory<K>*>(owner)->release(static_cast<Leaf<K>*>(leaf));
            },
            &memory),
        ledger(pool, root),
        reserve(pool, ledger),
        cold(pool, entries, memory, top_writer, signposts, ledger, counts),
        structure(pool, entries, memory, top, top_writer, ledger, reserve, cold, counts),
        locator(top, top_writer, cold, structure),
        writer(pool, entries, memory, structure, ledger, counts),
        joins(root.anchors.data(), structure, locator, cold),
        scanner(entries, memory),
        resumer(pool, ledger, reserve, signposts, top_writer, cold, locator) {}
  Upkeep(const Upkeep&) = delete;
  Upkeep& operator=(const Upkeep&) = delete;

  /// Frees what it can of what was unlinked, and what was put aside.
  ~Upkeep() {
    resumer.stop();
    try {
      reserve.give_up();
      ledger.free_unlinked();
    } catch (const std::exception&) {
      // What is still named is freed when the index is opened again.
    }
  }

  Root& root;
  Counts counts;
  LeafMemory<K> memory;
  epoch::DrainFirst drain;  // what was retired comes back to the memory before that goes
  PositionList<K> positions;
  TopLayer<K> top;
  Signposts<K> signposts;
  TopWriter<K> top_writer;
  Ledger ledger;
  Reserve reserve;
  ColdLeaves<K> cold;
  Structure<K> structure;
  Locator<K> locator;
  PairWriter<K> writer;
  Joins<K> joins;
  LeafScanner<K> scanner;
  Resumer<K> resumer;
};

}  // namespace perdix::detail::index::nbtree
