// Verification of every invariant that layout.h (L1-L8), mnode.h (M1-M2), top_layer.h (T1),
// write_buffer.h (B1-B3) and scan_orders.h (O1) state, and the list of all blocks that an index
// reaches.
//
// All leaves are warm, the queue to the backup is empty, and no other thread changes the index. The
// caller holds an epoch::Guard.
#pragma once

#include <perdix/types.h>

#include "index/common/owned.h"
#include "index/sptree/layout.h"
#include "index/sptree/parts.h"

namespace perdix::detail::index::sptree {

template <class K>
class Checker {
 public:
  using Node = Mnode<K>;
  using Key = View<K>;

  /// Both outlive this.
  Checker(const Parts<K>& parts, const Root& root) : parts_(parts), root_(root) {}

  CheckReport check() const;
  /// Tells of all blocks of the index.
  void walk(Owned& owned) const;

 private:
  using Buffer = typename NodeBuffers<K>::Buffer;
  using Keys = Codec<K>;
  using NodeBounds = Bounds<K>;

  void check_backup(CheckReport& report) const;
  void check_top(CheckReport& report) const;
  void check_node(const Node& node, CheckReport& report) const;
  void check_pairs(const Node& node, CheckReport& report) const;
  void check_buffer(const Node& node, CheckReport& report) const;

  const Parts<K>& parts_;
  const Root& root_;
};

}  // namespace perdix::detail::index::sptree
