// Which blocks a list owns (layout.h, L6), as index/common/owned.h has it: node by node from the
// first one on. Only level 0 is read: when the list is being dropped, the others may lead to freed
// nodes. No other thread changes the list.
//
// When it is dropped, the strings of pairs that are only in the log are freed first, while the list
// still is the one that the log belongs to. The mark of the head says that they are freed.
#pragma once

#include <utility>
#include <vector>

#include "alloc/session.h"
#include "index/common/owned_log.h"
#include "index/skiplist/node.h"

namespace perdix::detail::index::skiplist {

/// Tells of all blocks of the list whose head `word` leads to, but for the strings of pairs that
/// have no node. Throws corrupt.
template <class K>
void walk(pool::PoolCore& pool, std::uint64_t& word, const ValueCodec& values, Owned& owned) {
  Node& head = checked_head(pool, pm::load(word));
  walk_list(pool, head.first, load_link(head, 0).node, "a node", owned, [&](pm::Offset at) {
    const Node& node = checked_node(pool, at, 0);
    return ListStep{load_link(node, 0).node, OwnedBlocks(at, node_bytes(height_of(node)), "a node")
                                                 .add_key<K>(pm::load(node.key))
                                                 .add_value(values, pm::load(node.value))};
  });
  walk_log(pool, log_of(head), owned);
  owned.release(pm::set_word(word, pm::kNull),
                OwnedBlocks(pool.offset(&head), node_bytes(kMaxHeight), "a head"));
}

/// Whether a key has a node in the list behind this one.
template <class K>
bool is_in_list(pool::PoolCore& pool, const Node& from, Word key) {
  const Codec<K> keys(pool);
  for (const Node* node = &from;;) {
    const pm::Offset next = load_link(*node, 0).node;
    if (next == pm::kNull) return false;
    node = &checked_node(pool, next, 0);
    if (!(keys.view(pm::load(node->key)) < keys.view(key))) return pm::load(node->key) == key;
  }
}

/// Frees the strings of the pairs in the log that have no node, pair by pair, and closes all
/// chains.
template <class K>
void free_logged_pairs(pool::PoolCore& pool, Node& head, const ValueCodec& values) {
  DroppedLog dropped(pool, pm::load(log_of(head)));
  wal::Log& log = *dropped.get();
  std::vector<std::pair<wal::Owner, wal::Position>> chains;
  log.for_each_surviving(
      [&](wal::Owner owner, wal::Position first) { chains.emplace_back(owner, first); });
  for (const auto& [owner, first] : chains) {
    const DroppedLog::Pairs pairs = read_chain(log, owner, first).pairs;
    const pm::Offset place = owner * pm::kLineSize;
    const Node& node = place == pool.offset(&head) ? head : checked_node(pool, place, kTall - 1);
    wal::Chain& chain = dropped.adopt(owner, first, static_cast<std::uint16_t>(pairs.size()));
    for (const auto& [key, value] : pairs) {
      if (is_in_list<K>(pool, node, key)) continue;
      alloc::Session session = pool.allocator().session();
      Codec<K>::free(session, key);
      values.free(session, value);
      log.append_surely(chain, wal::Type::erase_key, key, 0, session);
    }
    dropped.end();
  }
}

template <class K>
void destroy(pool::PoolCore& pool, std::uint64_t& word, Kind value_kind) {
  if (pm::load(word) == pm::kNull) return;
  const ValueCodec values(pool, value_kind);
  Node& head = checked_head(pool, pm::load(word));
  if (owns_blobs<K>(values) && pm::load(log_of(head)) != pm::kNull && !is_hollow(head)) {
    free_logged_pairs<K>(pool, head, values);
    const Meta meta{.head = true, .hollow = true, .height = kMaxHeight};
    pool.pm().publish(head.meta, meta.pack());  // before the first node goes
  }
  DroppedBlocks owned(pool.allocator());
  walk<K>(pool, word, values, owned);
}

}  // namespace perdix::detail::index::skiplist
