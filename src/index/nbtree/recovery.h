// Opening an index. A new index gets its first leaves. Of an existing index the root block and what
// the ledger names are read, whatever its size. The first leaf of each region of keys is known
// then, and cold; the others become known when they are needed (cold_leaves.h), and in the
// background (resumer.h). The pool has resolved the allocator's log before, so the invariants of
// layout.h hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "alloc/session.h"
#include "index/common/codec.h"
#include "index/common/retry.h"
#include "index/nbtree/entry.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/upkeep.h"

namespace perdix::detail::index::nbtree {

/// Gives a new index its root block, and the root block the first leaf of each region. The root
/// word and `first` are the commits. After a crash between the two it goes on with the leaves.
template <class K>
void create(pool::PoolCore& pool, std::uint64_t& root_word) {
  const pm::Persister& pm = pool.pm();
  if (pm::load(root_word) == pm::kNull) {
    alloc::Session session = pool.allocator().session();
    const pm::Offset offset = session.reserve(sizeof(Root));
    Root& root = *pool.at<Root>(offset);
    pm.zero(&root, sizeof root);
    pm.store(root.magic, kRootMagic);
    pm.flush(&root, sizeof root);  // log() fences before the root can be linked
    session.commit_when(root_word, ~std::uint64_t{0}, offset);
    session.log();
    pm.store(root_word, offset);               // the commit
    pm.flush(&root_word, sizeof(pm::Offset));  // finish() fences: nothing is freed (R3)
    session.finish();
  }
  Root& root = checked_root(pool, pm::load(root_word));
  if (pm::load(root.first) != pm::kNull) return;
  alloc::Session session = pool.allocator().session();
  for (unsigned i = EntryLayout<K>::kRegions; i-- > 0;) {
    const std::size_t bytes = block_bytes(kSmallCapacity);
    const pm::Offset offset = session.reserve(bytes);
    Block& block = *pool.at<Block>(offset);
    pm.zero(&block, bytes);
    pm.store(block.meta, Meta{kSmallCapacity}.pack());
    const bool last = i + 1 == EntryLayout<K>::kRegions;
    pm.store(block.next, last ? pm::kNull : pool.offset(&root.anchors[i + 1]));
    pm.flush(&block, bytes);  // log() fences before it can be linked
    pm.store(root.anchors[i].block, offset);
    pm.store(root.anchors[i].low, EntryLayout<K>::low_of_region(i));
  }
  pm.flush(&root.anchors, sizeof root.anchors);  // as above
  session.commit_when(root.first, ~std::uint64_t{0}, pool.offset(root.anchors.data()));
  session.log();
  pm.store(root.first, pool.offset(root.anchors.data()));  // the commit
  pm.flush(&root.first, sizeof root.first);                // finish() fences: nothing is freed (R3)
  session.finish();
}

/// The root of an index, which is created if it is not there or not complete.
template <class K>
Root& ready_root(pool::PoolCore& pool, std::uint64_t& root_word) {
  retry_when_full(pool, [&] { create<K>(pool, root_word); });
  return checked_root(pool, pm::load(root_word));
}

/// Builds the layers above the leaves, from the first leaf of each region. Throws corrupt and
/// std::bad_alloc.
template <class K>
void recover(const pool::PoolCore& pool, const Codec<K>& keys, Upkeep<K>& upkeep) {
  Root& root = upkeep.root;
  if (pm::load(root.first) != pool.offset(root.anchors.data()))
    pool::throw_corrupt(pool, "its first anchor", pm::load(root.first));
  unsigned region = 0;
  upkeep.top.build(EntryLayout<K>::kRegions, [&](std::span<typename TopLayer<K>::Bound> bounds) {
    for (auto& bound : bounds) {
      Anchor& anchor = root.anchors[region];
      if (pm::load(anchor.block) == pm::kNull ||
          pm::load(anchor.low) != EntryLayout<K>::low_of_region(region++))
        pool::throw_corrupt(pool, "an anchor", pool.offset(&anchor));
      Position<K>& at = upkeep.positions.add_cold(anchor, keys.view(pm::load(anchor.low)));
      bound = {at.low(), &at};
    }
  });
}

}  // namespace perdix::detail::index::nbtree
