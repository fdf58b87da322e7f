// Verification of every invariant that layout.h (L1-L8), mnode.h (M1-M2), top_layer.h (T1),
// write_buffer.h (B1-B3) and scan_orders.h (O1) state, and the list of all blocks that an index
// reaches.
//
// All leaves are warm, the queue to the backup is empty, and no other thread changes the index. The
// caller holds an epoch::Guard.
#pragma once

#include <perdix/types.h>

#include "index/sptree/buffers.h"
#include "index/sptree/layout.h"
#include "index/sptree/leaf_backup.h"
#include "index/sptree/leaf_orders.h"
#include "index/sptree/leaf_store.h"
#include "index/sptree/middle_nodes.h"
#include "index/sptree/top_layer.h"
#include "pool/open_index.h"

namespace perdix::detail::index::sptree {

template <class K>
class Checker {
 public:
  using Node = Mnode<K>;
  using Key = View<K>;

  /// All outlive this.
  Checker(pool::PoolCore& pool, const Root& root, const LeafStore<K>& leaves,
          const MiddleNodes<K>& nodes, const NodeBuffers<K>& buffers, const TopLayer<K>& top,
          const LeafBackup<K>& backup, const LeafOrders<K>& orders)
      : pool_(pool),
        root_(root),
        leaves_(leaves),
        nodes_(nodes),
        buffers_(buffers),
        top_(top),
        backup_(backup),
        orders_(orders) {}

  CheckReport check() const;
  void for_each_block(const pool::BlockVisitor& visit) const;

 private:
  using Buffer = typename NodeBuffers<K>::Buffer;
  using Keys = Codec<K>;
  using NodeBounds = Bounds<K>;

  void check_backup(CheckReport& report) const;
  void check_top(CheckReport& report) const;
  void check_node(const Node& node, CheckReport& report) const;
  void check_pairs(const Node& node, CheckReport& report) const;
  void check_buffer(const Node& node, CheckReport& report) const;

  pool::PoolCore& pool_;
  const Root& root_;
  const LeafStore<K>& leaves_;
  const MiddleNodes<K>& nodes_;
  const NodeBuffers<K>& buffers_;
  const TopLayer<K>& top_;
  const LeafBackup<K>& backup_;
  const LeafOrders<K>& orders_;
};

}  // namespace perdix::detail::index::sptree
