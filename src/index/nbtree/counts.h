// What an index counts as it changes, so that size() and stats() need not visit it.
#pragma once

#include "index/nbtree/entry_protocol.h"
#include "index/nbtree/leaf.h"
#include "util/striped_counter.h"

namespace perdix::detail::index::nbtree {

/// Of the leaves that are warm. Thread-safe; a sum is exact while no thread changes the index.
struct Counts {
  util::StripedCounter pairs;
  util::StripedCounter leaves;
  util::StripedCounter small_leaves;  ///< of those
  util::StripedCounter blob_bytes;    ///< of keys, values and low bounds

  template <class K>
  void add_leaf(const Leaf<K>& leaf, int sign) {
    leaves.add(sign);
    if (leaf.capacity() == kSmallCapacity) small_leaves.add(sign);
  }

  /// Those of an entry; value 0: of a key alone.
  template <class K>
  void add_blobs(const EntryProtocol<K>& entries, Word key, Word value, int sign) {
    if (!entries.all_inline()) blob_bytes.add(sign * entries.footprint(key, value));
  }
};

}  // namespace perdix::detail::index::nbtree
