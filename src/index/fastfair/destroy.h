// Frees all of an index that is being dropped, in steps of one commit each, so that it can begin
// again after a crash: the inner levels, then leaf by leaf the strings of its pairs and the leaf.
// No other thread uses the index.
//
// Pairs of a leaf that are only in the log are first written to the leaf. So all strings are
// reached from leaves, and the log is freed after these.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "index/common/value_codec.h"
#include "index/fastfair/nodes.h"
#include "index/fastfair/recovery.h"

namespace perdix::detail::index::fastfair {

/// Frees a block with the store that makes it unreachable.
inline void free_by(pool::PoolCore& pool, std::uint64_t& word, std::uint64_t value,
                    alloc::Session session) {
  session.commit_when(word, ~std::uint64_t{0}, value);
  session.log();
  pool.pm().publish(word, value);  // the commit
  session.finish();
}

/// Frees the root's level but for its first node, which is then freed with the root word leading
/// one level down.
template <class K>
void free_inner_level(pool::PoolCore& pool, std::uint64_t& root, Node& first) {
  const Codec<K> keys(pool);
  while (Node* second = right_neighbour<K>(pool, keys, first)) {
    alloc::Session session = pool.allocator().session();
    session.free(pool.offset(second));
    free_by(pool, first.next, pm::load(second->next), std::move(session));
  }
  const pm::Offset below = pm::load(first.leftmost);
  checked_child(pool, first, below);
  alloc::Session session = pool.allocator().session();
  session.free(pool.offset(&first));
  free_by(pool, root, below, std::move(session));
}

/// Frees the strings of the leaf's entries, from the last one on, one commit each.
template <class K>
void free_pairs(pool::PoolCore& pool, const ValueCodec& values, Node& leaf) {
  remove_copies(pool.pm(), leaf);  // what a copy refers to would be freed twice
  for (unsigned left = meta_of(leaf).count; left > 0; --left) {
    const Entry entry = load_entry(leaf, left - 1);
    alloc::Session session = pool.allocator().session();
    Codec<K>::free(session, entry.key);
    values.free(session, entry.value);
    free_by(pool, leaf.meta, meta_with(leaf, left - 1), std::move(session));
  }
}

/// The changes of leaves with strings in the log of a tree that is being dropped.
template <class K>
class LoggedPairs {
 public:
  /// Once all leaves are freed, only a part of the log may be left.
  LoggedPairs(pool::PoolCore& pool, const Head* head, const ValueCodec& values)
      : pool_(pool), values_(values) {
    if (head == nullptr || pm::load(head->root) == pm::kNull || pm::load(head->log) == pm::kNull)
      return;
    log_.emplace(pool, pm::load(head->log), wal::Log::Limits{~std::uint64_t{0}});
    log_->add(closing_);
  }

  /// Moves the pairs of the leaf's chain into the leaf, if it has any. A crash before the END
  /// leaves pairs in both. Those that the leaf had before go first, so that there is room, unless
  /// some of the chain are among them: these had their room before.
  void move_to(Node& leaf) {
    const wal::Owner owner = pm::load(number_of(leaf));
    if (!log_ || owner == 0 || owner > wal::kMaxOwner) return;
    const wal::Position head = log_->surviving(owner);
    if (head == 0) return;
    remove_copies(pool_.pm(), leaf);
    std::vector<std::pair<Word, Word>> pairs = read_chain(*log_, owner, head).pairs;
    const auto is_there = [&](const auto& pair) {
      const auto end = leaf.entries.begin() + meta_of(leaf).count;
      return std::any_of(leaf.entries.begin(), end,
                         [&](const Entry& entry) { return pm::load(entry.key) == pair.first; });
    };
    if (std::erase_if(pairs, is_there) == 0) free_pairs<K>(pool_, values_, leaf);
    append(leaf, pairs);
    log_->adopt(closing_, owner, head);
    log_->end(closing_);
  }

 private:
  /// In no order, which nothing needs any more.
  void append(Node& leaf, const std::vector<std::pair<Word, Word>>& pairs) {
    const unsigned count = meta_of(leaf).count;
    if (count + pairs.size() > kCapacity)
      pool::throw_corrupt(pool_, "the log of a leaf", pool_.offset(&leaf));
    unsigned filled = count;
    for (const auto& [key, value] : pairs) store_entry(pool_.pm(), leaf, filled++, {key, value});
    Entry* const first = leaf.entries.data() + count;
    pool_.pm().flush(first, pairs.size() * sizeof(Entry));   // fenced below
    pool_.pm().fence();                                      // before they are counted
    pool_.pm().publish(leaf.meta, meta_with(leaf, filled));  // before the END
  }

  pool::PoolCore& pool_;
  const ValueCodec& values_;
  std::optional<wal::Log> log_;
  wal::Chain closing_;
};

/// Level by level from the top, then the leaves from the first one on: so every crash point leaves
/// something that this can go on with.
template <class K>
void free_nodes(pool::PoolCore& pool, std::uint64_t& root, const ValueCodec& values,
                LoggedPairs<K>* logged) {
  for (pm::Offset offset = pm::load(root); offset != pm::kNull; offset = pm::load(root)) {
    Node& node = checked_node(pool, offset);
    if (meta_of(node).level > 0) {
      free_inner_level<K>(pool, root, node);
      continue;
    }
    if (logged != nullptr) {
      logged->move_to(node);
      free_pairs<K>(pool, values, node);
    }
    const Node* next = right_neighbour<K>(pool, Codec<K>(pool), node);
    alloc::Session session = pool.allocator().session();
    session.free(offset);
    Codec<K>::free(session, pm::load(node.low));
    free_by(pool, root, next == nullptr ? pm::kNull : pool.offset(next), std::move(session));
  }
}

template <class K>
void destroy_tree(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind) {
  const ValueCodec values(pool, value_kind);
  Head* const head = head_at(pool, pm::load(root));
  std::uint64_t& top = head == nullptr ? root : head->root;
  if (Codec<K>::kInline && values.is_inline()) {
    free_nodes<K>(pool, top, values, nullptr);
  } else {
    LoggedPairs<K> logged(pool, head, values);
    free_nodes<K>(pool, top, values, &logged);
  }
  if (head == nullptr) return;
  if (pm::load(head->log) != pm::kNull) wal::destroy(pool, head->log);
  alloc::Session session = pool.allocator().session();
  session.free(pool.offset(head));
  free_by(pool, root, pm::kNull, std::move(session));
}

}  // namespace perdix::detail::index::fastfair
