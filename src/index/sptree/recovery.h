// What an opening writes to PM: a new index gets its root block and its first leaf. (Besides, the
// backup of an index that has none yet, and for the first budget of an old one an empty log.)
//
// Of an existing index three places are read, whatever its size: the root block, the first leaf,
// and the log if there is one. The rest is restored when it is needed, and in the background
// (resumer.h). The pool has resolved the allocator's log before, so the invariants of layout.h
// hold.
#pragma once

#include <cstddef>
#include <cstdint>

#include "alloc/session.h"
#include "index/sptree/layout.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::sptree {

/// Gives a new index its root block and its first leaf, which is empty and responsible for all
/// keys. The root word is the commit.
inline void create(pool::PoolCore& pool, std::uint64_t& root_word) {
  const pm::Persister& pm = pool.pm();
  alloc::Session session = pool.allocator().session();
  const pm::Offset offset = session.reserve(sizeof(Leaf));
  Leaf& leaf = *pool.at<Leaf>(offset);
  pm.store(leaf.magic, kLeafMagic);
  pm.zero(&leaf.link, offsetof(Leaf, pairs) - offsetof(Leaf, link));
  pm.flush(&leaf, offsetof(Leaf, pairs));  // as below: log() fences before the root can be linked
  const pm::Offset root_offset = session.reserve(sizeof(Root));
  Root& root = *pool.at<Root>(root_offset);
  pm.store(root.magic, kRootMagic);
  pm.store(root.first, offset);
  pm.store(root.log, pm::kNull);
  pm.store(root.backup, pm::kNull);
  pm.flush(&root, sizeof root);  // log() fences it, too
  session.commit_when(root_word, ~std::uint64_t{0}, root_offset);
  session.log();
  pm.store(root_word, root_offset);          // the commit
  pm.flush(&root_word, sizeof root_offset);  // finish() fences: nothing is freed (rule R3)
  session.finish();
}

}  // namespace perdix::detail::index::sptree
