// Writes and erases of pairs that have nodes, attempt by attempt. An attempt finds its nodes
// without latches, takes these, and returns nullopt if another thread has changed the nodes in
// between. That thread has done its operation, so the threads cannot all repeat their attempts
// without end. The caller holds an epoch::Guard, and no latch of a node.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include <perdix/types.h>

#include "alloc/session.h"
#include "index/common/value_codec.h"
#include "index/common/word_index.h"
#include "index/skiplist/towers.h"

namespace perdix::detail::index::skiplist {

/// A write of a pair. `expected`: the value that it may replace, null if it may be any.
template <class K>
struct PairWrite {
  HashedKey<K> key;
  NewValue value;
  Mode mode;
  const NewValue* expected;
};

template <class K>
class NodeWriter {
 public:
  /// All outlive this.
  NodeWriter(const Ways<K>& ways, Towers<K>& towers, const ValueCodec& values)
      : ways_(ways), nodes_(ways.nodes()), towers_(towers), values_(values) {}

  std::optional<bool> write(const PairWrite<K>& write, Erased& erased) {
    const HashedKey<K>& key = write.key;
    const unsigned wanted = towers_.wanted_height(key.key);
    const Path path = ways_.trace(key.key, wanted >= kTall);
    if (nodes_.has_key(path.at[0].next, key)) return replace(*path.at[0].next, write, erased);
    if (write.mode == Mode::update)
      return nodes_.were_adjacent(path.at[0], erased) ? std::optional(false) : std::nullopt;
    const unsigned height = std::min(wanted, path.levels);
    TowerLatches latches;
    if (!towers_.lock(latches, path, height, nodes_.latch_of_key(key), erased)) return std::nullopt;
    towers_.insert(path, height, key, write.value);
    return true;
  }

  /// Writes to a node that has the key. Returns nullopt if the node was erased.
  std::optional<bool> replace(Node& node, const PairWrite<K>& write, Erased& erased) {
    std::array latch = {&nodes_.latch_of(node)};
    LatchSet latches;
    latches.lock_all(latch);
    if (nodes_.is_gone(node, erased)) return std::nullopt;
    if (write.mode == Mode::insert || !value_is(node, write.expected)) return false;
    set_value(node, write.value);
    return true;
  }

  /// Erases the pair of a key, or its hollow node.
  std::optional<bool> erase(const HashedKey<K>& key, const NewValue* expected, Erased& erased) {
    Path path = ways_.trace(key.key, false);
    Node* const node = path.at[0].next;
    if (!nodes_.has_key(node, key))
      return nodes_.were_adjacent(path.at[0], erased) ? std::optional(false) : std::nullopt;
    const unsigned height = height_of(*node);
    if (height >= kTall && ways_.are_cached()) {
      path = ways_.trace(key.key, true);
      if (path.at[0].next != node) return std::nullopt;
    }
    const unsigned known = std::min(height, path.levels);
    TowerLatches latches;
    if (!towers_.lock(latches, path, known, nodes_.latch_of(*node), erased)) return std::nullopt;
    if (nodes_.is_gone(*node, erased)) return std::nullopt;
    // The node is on no level that the list did not have. But levels may have come since the
    // search.
    if (known < height && known < nodes_.levels()) return std::nullopt;
    if (!value_is(*node, expected)) return false;
    towers_.remove(path, height);
    return true;
  }

  bool value_is(const Node& node, const NewValue* expected) const {
    return expected == nullptr || values_.equal(pm::load(node.value), *expected);
  }

 private:
  /// Replaces a value; its word is the commit.
  void set_value(Node& node, NewValue value) {
    if (values_.is_inline()) {
      nodes_.pm().publish(node.value, value.word());  // the commit; the node is durable already
    } else {
      alloc::Session session = nodes_.pool().allocator().session();
      const Word old_word = pm::load(node.value);
      const Word new_word = values_.write(session, value);
      if (new_word == old_word) return;  // both empty: nothing to change
      values_.free(session, old_word);
      session.commit(pm::set_word(node.value, new_word));  // the new blob is durable before
    }
  }

  const Ways<K>& ways_;
  const Nodes<K>& nodes_;
  Towers<K>& towers_;
  const ValueCodec& values_;
};

}  // namespace perdix::detail::index::skiplist
