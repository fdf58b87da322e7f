// Frees all of an index that is being dropped, node by node from the first one on, so that it can
// begin again after a crash. Only level 0 is read: the others may lead to freed nodes. No other
// thread uses the index.
//
// The strings of pairs that are only in the log are freed first, while the list still is the one
// that the log belongs to. The mark of the head says that they are freed.
#pragma once

#include <utility>
#include <vector>

#include "alloc/session.h"
#include "index/common/home_buffers.h"
#include "index/common/value_codec.h"
#include "index/skiplist/node.h"
#include "wal/log.h"

namespace perdix::detail::index::skiplist {

/// The changes in the log of a list that is being dropped.
template <class K>
class LoggedPairs {
 public:
  LoggedPairs(pool::PoolCore& pool, Node& head, const ValueCodec& values)
      : pool_(pool),
        head_(head),
        values_(values),
        log_(pool, pm::load(log_of(head)), wal::Log::Limits{~std::uint64_t{0}}) {
    log_.add(chain_);
  }

  /// Frees the strings of the pairs that have no node, pair by pair, and closes all chains.
  void free() {
    std::vector<std::pair<wal::Owner, wal::Position>> chains;
    log_.for_each_surviving(
        [&](wal::Owner owner, wal::Position head) { chains.emplace_back(owner, head); });
    for (const auto& [owner, head] : chains) {
      const LoggedChanges logged = read_chain(log_, owner, head);
      const pm::Offset place = owner * pm::kLineSize;
      const Node& node =
          place == pool_.offset(&head_) ? head_ : checked_node(pool_, place, kTall - 1);
      const auto sure = static_cast<std::uint16_t>(logged.pairs.size());
      log_.adopt(chain_, log_.prepare_adoption(owner, head, sure));
      for (const auto& [key, value] : logged.pairs) {
        if (!is_in_list(node, key)) free_pair(key, value);
      }
      log_.end(chain_);
    }
  }

 private:
  /// Whether a key has a node in the list behind this one.
  bool is_in_list(const Node& from, Word key) const {
    const Codec<K> keys(pool_);
    for (const Node* node = &from;;) {
      const pm::Offset next = load_link(*node, 0).node;
      if (next == pm::kNull) return false;
      node = &checked_node(pool_, next, 0);
      if (!(keys.view(pm::load(node->key)) < keys.view(key))) return pm::load(node->key) == key;
    }
  }

  void free_pair(Word key, Word value) {
    alloc::Session session = pool_.allocator().session();
    Codec<K>::free(session, key);
    values_.free(session, value);
    log_.append_surely(chain_, wal::Type::erase_key, key, 0, session);
  }

  pool::PoolCore& pool_;
  Node& head_;
  const ValueCodec& values_;
  wal::Log log_;
  wal::Chain chain_;
};

/// The list has strings, and a log that may refer to some.
template <class K>
void free_logged_pairs(pool::PoolCore& pool, Node& head, const ValueCodec& values) {
  if (pm::load(log_of(head)) == pm::kNull || is_hollow(head)) return;
  LoggedPairs<K>(pool, head, values).free();
  const Meta meta{.head = true, .hollow = true, .height = kMaxHeight};
  pool.pm().publish(head.meta, meta.pack());  // before the first node goes
}

/// As WordList::destroy().
template <class K>
void destroy_list(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind) {
  if (pm::load(root) == pm::kNull) return;
  const ValueCodec values(pool, value_kind);
  Node& head = checked_head(pool, pm::load(root));
  if (!Codec<K>::kInline || !values.is_inline()) free_logged_pairs<K>(pool, head, values);
  while (const pm::Offset first = load_link(head, 0).node) {
    const Node& node = checked_node(pool, first, 0);
    alloc::Session session = pool.allocator().session();
    session.free(first);
    Codec<K>::free(session, pm::load(node.key));
    values.free(session, pm::load(node.value));
    session.commit(pm::set_word(head.first, load_link(node, 0).pack()));
  }
  if (pm::load(log_of(head)) != pm::kNull) wal::destroy(pool, log_of(head));
  alloc::Session session = pool.allocator().session();
  session.free(pool.offset(&head));
  session.commit(pm::set_word(root, pm::kNull));
}

}  // namespace perdix::detail::index::skiplist
