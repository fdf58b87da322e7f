// The nodes of a list in PM, their latches in DRAM, and the search from a node on.
//
// A search (descend) reads links and compares keys. It validates nothing: its callers do, by the
// latch of the one node on which their answer depends (skiplist.h). The caller holds an
// epoch::Guard.
//
//   N1. The latch of a node follows from its key, so it is known before there is a node.
//   N2. levels() is at least the number of levels on which the head leads to a node. Links that are
//       being made under the head's latch may be on more.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include <perdix/types.h>

#include "index/common/codec.h"
#include "index/common/latches.h"
#include "index/skiplist/node.h"
#include "pm/access.h"
#include "pool/checked.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::skiplist {

/// A key, and the part of its hash that its word has as tag.
template <class K>
struct HashedKey {
  explicit HashedKey(View<K> of) : key(of), hash(Codec<K>::hash16(of)) {}
  HashedKey(View<K> of, Word word) : key(of), hash(Codec<K>::hash16_of_word(word)) {}

  View<K> key;
  Hash16 hash;
};

/// Words of a pair.
struct Pair {
  Word key;
  Word value;
};

inline Pair pair_of(const Node& node) { return {pm::load(node.key), pm::load(node.value)}; }

/// A node with a latch and its version, from before anything was read of the node.
struct SeenNode {
  Node* node = nullptr;
  Latch* latch = nullptr;
  std::uint64_t version = 0;

  bool valid() const { return latch->read_validate(version); }
};

inline SeenNode look(Node& node, Latch& latch) { return {&node, &latch, latch.read_begin()}; }

/// How far to the right a search goes: to the last key that is below `key`, or at it.
template <class K>
struct Bound {
  View<K> key;
  bool inclusive = false;

  bool reaches(View<K> other) const { return inclusive ? !(key < other) : other < key; }
};

/// Of a bound on one level: the last node that it reaches, or the head; and the node behind that,
/// or null.
struct Neighbours {
  Node* before;
  Node* next;
};

/// The neighbours of a bound on the levels from 0 on.
struct Path {
  unsigned levels = 0;
  std::array<Neighbours, kMaxHeight> at;  // the first `levels`

  std::uint64_t& link_before(unsigned level) const { return link_word(*at[level].before, level); }
};

/// The node that an operation has last found erased: see Nodes::is_gone().
struct Erased {
  const Node* last = nullptr;
};

template <class K>
class Nodes {
 public:
  using Key = View<K>;
  using Keys = Codec<K>;

  /// The pool outlives this.
  Nodes(pool::PoolCore& pool, Node& head)
      : pool_(pool),
        head_(head),
        keys_(pool),
        latches_(Latches::kBits),
        levels_(levels_in_use(head)) {}

  pool::PoolCore& pool() const { return pool_; }
  const pm::Persister& pm() const { return pool_.pm(); }
  const Keys& keys() const { return keys_; }
  Node& head() const { return head_; }
  std::uint64_t dram_bytes() const { return latches_.bytes(); }

  unsigned levels() const { return levels_.load(std::memory_order_acquire); }

  /// Has searches begin at the levels of a node that is higher than all. One thread at a time does
  /// so: the head is the node before on the new levels, and locked.
  void add_levels(unsigned height) {
    if (height > levels()) levels_.store(height, std::memory_order_release);
  }

  Key key_of(const Node& node) const { return keys_.view(pm::load(node.key)); }
  HashedKey<K> hashed_key_of(const Node& node) const { return {key_of(node), pm::load(node.key)}; }
  pm::Offset offset_of(const Node* node) const {
    return node == nullptr ? pm::kNull : pool_.offset(node);
  }
  bool has_key(const Node* node, const HashedKey<K>& key) const {
    return node != nullptr && keys_.equal(pm::load(node->key), key.key, key.hash);
  }

  /// The next node on a level, or null. Throws corrupt if what the link leads to has no such level.
  Node* next_of(const Node& node, unsigned level) const {
    const pm::Offset next = load_link(node, level).node;
    return next == pm::kNull ? nullptr : &checked_node(pool_, next, level);
  }

  /// Throws corrupt if keys do not ascend, so that a damaged list cannot lead round in a circle.
  void require_ascending(const Node& node, const Node& next) const {
    if (&node != &head_ && !(key_of(node) < key_of(next))) [[unlikely]]
      pool::throw_corrupt(pool_, "a node", pool_.offset(&next));
  }

  /// Calls visit(node) for all nodes of a level but the head. Throws corrupt where keys do not
  /// ascend (L2, L3).
  template <class Visit>
  void for_each(unsigned level, Visit visit) const {
    const Node* before = &head_;
    while (const Node* node = next_of(*before, level)) {
      visit(*node);  // before its key is looked at
      require_ascending(*before, *node);
      before = node;
    }
  }

  /// Goes from `from`, which the bound reaches or which is the head, to the right as far as the
  /// bound reaches, and then a level down: from level `levels` - 1 to `lowest`. Calls
  /// on_level(level, neighbours) on each, and returns the neighbours on the last.
  template <class OnLevel>
  [[gnu::always_inline]] Neighbours descend(Node& from, Bound<K> bound, unsigned levels,
                                            OnLevel on_level, unsigned lowest = 0) const {
    Neighbours at{&from, nullptr};
    const Node* beyond = nullptr;  // a higher level has shown that the bound does not reach it
    for (unsigned level = levels; level-- > lowest;) {
      for (;;) {
        at.next = next_of(*at.before, level);
        if (at.next == nullptr || at.next == beyond) break;
        if (!bound.reaches(key_of(*at.next))) break;
        require_ascending(*at.before, *at.next);
        at.before = at.next;
      }
      beyond = at.next;
      on_level(level, at);
    }
    return at;
  }
  Neighbours descend(Node& from, Bound<K> bound, unsigned levels) const {
    return descend(from, bound, levels, [](unsigned, const Neighbours&) {});
  }
  /// Not inline: within a caller's loop it would take more instructions for each node.
  [[gnu::noinline]] Neighbours descend_from_head(Bound<K> bound) const {
    return descend(head_, bound, std::max(levels(), 1U));
  }

  // --- Latches. Many keys share one ---

  /// The latch of the node that the key has or would have (N1).
  Latch& latch_of_key(const HashedKey<K>& key) const {
    if constexpr (Keys::kInline) {
      return latches_.of(key.key);
    } else {
      return latches_.of(key.hash);
    }
  }
  Latch& latch_of(const Node& node) const {
    if (&node == &head_) return latches_.of(pool_.offset(&head_));
    const Word word = pm::load(node.key);
    return latches_.of(Keys::kInline ? word : Keys::hash16_of_word(word));
  }
  SeenNode look(Node& node) const { return skiplist::look(node, latch_of(node)); }

  /// Whether a node is marked as erased; then the caller searches again. An erased node has left
  /// all levels before it was marked, so the second search does not reach it. Throws corrupt if it
  /// does: the pool is damaged, and the caller would search without end.
  bool is_gone(const Node& node, Erased& erased) const {
    if (!is_erased(node)) [[likely]]
      return false;
    if (erased.last == &node) pool::throw_corrupt(pool_, "an erased node", pool_.offset(&node));
    erased.last = &node;
    return true;
  }

  /// Whether both were neighbours in the list when the search has read the link between them. The
  /// first one was in the list then, if it is not marked now. Waits for a writer of the first one:
  /// so that link is durable now, or a later one is.
  bool were_adjacent(const Neighbours& neighbours, Erased& erased) const {
    latch_of(*neighbours.before).read_begin();  // waits for a writer
    return !is_gone(*neighbours.before, erased);
  }

 private:
  pool::PoolCore& pool_;
  Node& head_;
  const Keys keys_;
  const Latches latches_;
  std::atomic<unsigned> levels_;  // N2
};

}  // namespace perdix::detail::index::skiplist
