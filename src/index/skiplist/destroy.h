// Frees all of an index that is being dropped, node by node from the first one on, so that it can
// begin again after a crash. Only level 0 is looked at: the others lead to what is gone. No other
// thread uses the index.
#pragma once

#include "index/skiplist/skiplist.h"

namespace perdix::detail::index::skiplist {

template <class K>
void WordList<K>::destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind) {
  if (pm::load(root) == pm::kNull) return;
  const WordCodec values(pool, value_kind);
  Node& head = checked_head(pool, pm::load(root));
  while (const pm::Offset first = load_link(head, 0).node) {
    const Node& node = checked_node(pool, first, 0);
    alloc::Session session = pool.allocator().session();
    session.free(first);
    Keys::free(session, pm::load(node.key));
    values.free(session, pm::load(node.value));
    session.commit(pm::set_word(head.first, load_link(node, 0).pack()));
  }
  alloc::Session session = pool.allocator().session();
  session.free(pool.offset(&head));
  session.commit(pm::set_word(root, pm::kNull));
}

}  // namespace perdix::detail::index::skiplist
