// The parts of an SpTree that split and merge (smo.h) and the return of cold leaves (resumer.h)
// change together. Each has its own invariants.
#pragma once

#include "index/sptree/buffers.h"
#include "index/sptree/leaf_backup.h"
#include "index/sptree/leaf_store.h"
#include "index/sptree/middle_nodes.h"
#include "index/sptree/node_hints.h"
#include "index/sptree/top_layer.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::sptree {

template <class K>
struct Parts {
  pool::PoolCore& pool;
  LeafStore<K>& leaves;
  MiddleNodes<K>& nodes;
  NodeBuffers<K>& buffers;
  NodeHints<K>& hints;
  TopLayer<K>& top;
  LeafBackup<K>& backup;
};

}  // namespace perdix::detail::index::sptree
