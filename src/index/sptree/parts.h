// The parts of an SpTree, from which all its work is done: a search (search.h), scans (scan.h), the
// structure modifications (smo.h), the return of cold leaves (resumer.h), and the verification
// (check.h). Each part has its own invariants.
#pragma once

#include <utility>

#include "epoch/guard.h"
#include "index/common/scan_orders.h"
#include "index/sptree/buffers.h"
#include "index/sptree/leaf_backup.h"
#include "index/sptree/leaf_orders.h"
#include "index/sptree/leaf_store.h"
#include "index/sptree/middle_nodes.h"
#include "index/sptree/node_hints.h"
#include "index/sptree/top_layer.h"
#include "pool/pool_core.h"
#include "util/arena.h"
#include "wal/log.h"

namespace perdix::detail::index::sptree {

template <class K>
struct Parts {
  /// `back_up`: as LeafBackup has it.
  Parts(pool::PoolCore& the_pool, Kind values, const wal::Log::Limits& log_limits,
        typename BackupQueue<K>::BackUp back_up)
      : pool(the_pool),
        leaves(pool, values),
        orders(arena, pool.reclaimer()),
        nodes(arena, pool.reclaimer(), orders),
        buffers(pool, arena, log_limits, leaves, nodes),
        leaf_orders(orders, leaves, nodes, buffers),
        hints(arena, pool.reclaimer(), nodes, buffers, top),
        drain{pool.reclaimer()},
        top(arena, pool.reclaimer()),
        backup(pool, std::move(back_up)) {}

  pool::PoolCore& pool;
  LeafStore<K> leaves;
  util::Arena arena;  ///< bounds, orders, write buffers, and the top layer
  ScanOrders orders;  ///< by the numbers of nodes; a cache that scans fill
  MiddleNodes<K> nodes;
  NodeBuffers<K> buffers;
  LeafOrders<K> leaf_orders;
  NodeHints<K> hints;  ///< of integer keys, for writes with buffers
  // Before the arena is destroyed, all retired memory must have returned to it.
  epoch::DrainFirst drain;
  mutable TopLayer<K> top;       ///< a reader, too, adds to it: it is a cache
  mutable LeafBackup<K> backup;  ///< last: its work ends before any other part is destroyed
};

}  // namespace perdix::detail::index::sptree
