// The way to a place in a list: from the head down, or by the cached path (index/common/
// path_cache.h), which leads from a key to the last tall node before it without the levels above.
// From there the search goes on.
//
// Adding and taking out (P1): a node is erased under its own latch, so a thread that adds it holds
// that latch, and has seen that the node is not marked. A node is taken out before it is marked, so
// a search that begins later does not reach it (Nodes::is_gone).
//
// It has the nodes in it, since a lookup begins here, and would else load one address more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <unordered_set>

#include "epoch/guard.h"
#include "index/common/path_cache.h"
#include "index/common/resumption.h"
#include "index/skiplist/nodes.h"

namespace perdix::detail::index::skiplist {

template <class K>
class Ways {
 public:
  using Key = View<K>;

  /// Of the nodes behind a head. `path_budget`: what the cached path may take; 0: there is none.
  Ways(pool::PoolCore& pool, Node& head, std::uint64_t path_budget) : nodes_(pool, head) {
    if (path_budget == 0) return;
    path_ = std::make_unique<NodePath>(pool.reclaimer(), path_budget, KeyOf{nodes_.keys()});
  }

  Nodes<K>& nodes() { return nodes_; }
  const Nodes<K>& nodes() const { return nodes_; }
  bool are_cached() const { return path_ != nullptr; }
  std::uint64_t dram_bytes() const {
    return nodes_.dram_bytes() + (path_ == nullptr ? 0 : path_->bytes());
  }

  // --- Searches. The caller holds a guard ---

  /// The neighbours of a bound on level 0.
  Neighbours descend(Bound<K> bound) const {
    if (path_ == nullptr) [[likely]]
      return nodes_.descend_from_head(bound);
    return nodes_.descend(last_tall(bound), bound, kTall - 1);
  }

  /// The neighbours of a key on the levels that its node may have; the right ones may be that node.
  /// If the node is not `tall`, these are fewer levels, and the search may begin at the cached
  /// path. `at_least`: as many levels, even if the list has fewer.
  Path trace(Key key, bool tall, unsigned at_least = 0) const {
    Path path;
    const auto keep = [&](unsigned level, const Neighbours& at) { path.at[level] = at; };
    Node* const from = tall || path_ == nullptr ? nullptr : shortcut({key});
    path.levels =
        from != nullptr ? kTall - 1 : std::max(std::min(nodes_.levels() + 1, kMaxHeight), at_least);
    nodes_.descend(from != nullptr ? *from : nodes_.head(), {key}, path.levels, keep);
    return path;
  }

  /// The last tall node that the bound reaches, or the head.
  Node& last_tall(Bound<K> bound) const {
    if (Node* const near = path_ == nullptr ? nullptr : shortcut(bound)) [[likely]]
      return *near;
    Node& tall = *descend_to_tall(bound).before;
    add_passed(tall);
    return tall;
  }

  /// For each of some keys, at most kGroup, a tall node before it to which the cached path leads,
  /// or null.
  void shortcuts(std::span<const Key> keys, std::span<Node*> from) const {
    if (path_ != nullptr) path_->before(keys, true, from);
    for (std::size_t i = 0; i < keys.size(); ++i) from[i] = validated(from[i], {keys[i]});
  }

  // --- The cached path ---

  /// Adds a tall node, which is in its levels and whose latch is held (P1).
  void add(Node& tall) {
    if (path_ != nullptr) path_->add(tall);
  }

  /// Takes out a node that is about to be removed, and whose latch is held (P1). Throws bad_alloc,
  /// and has changed nothing.
  void remove(const Node& node) {
    if (path_ != nullptr && height_of(node) >= kTall) path_->remove(node);
  }

  /// Begins to fill the cached path. That of a list without tall nodes is then complete, others are
  /// later.
  void start_filling(bool in_background) {
    if (path_ == nullptr) return;
    const auto fill = [this](const std::stop_token& stop) {
      path_->template fill<K>(stop, [this](K& position) { return fill_some(position); });
    };
    if (load_link(nodes_.head(), kTall - 1).node == pm::kNull) {
      fill(std::stop_token());
    } else if (in_background) {
      filling_.start_thread(fill);
    }
  }
  void wait_for_filling() const { filling_.wait_for_thread(); }

  /// How far the path differs from what P1 and P2 say. `tall`: all nodes on level kTall - 1.
  auto faults(const std::unordered_set<const Node*>& tall) const { return path_->faults(tall); }

 private:
  /// Gives the cached path the key of a node.
  struct KeyOf {
    Codec<K> keys;
    Key operator()(const Node* node) const { return keys.view(pm::load(node->key)); }
  };
  using NodePath = PathCache<Node, KeyOf>;

  /// The neighbours of a bound on level kTall - 1.
  Neighbours descend_to_tall(Bound<K> bound) const {
    const auto on_level = [](unsigned, const Neighbours&) {};
    return nodes_.descend(nodes_.head(), bound, std::max(nodes_.levels(), kTall), on_level,
                          kTall - 1);
  }

  /// A tall node that the bound reaches; null if the path knows of none that is near enough.
  Node* shortcut(Bound<K> bound) const {
    return validated(path_->before(bound.key, !bound.inclusive), bound);
  }

  Node* validated(Node* tall, Bound<K> bound) const {
    if (tall == nullptr || is_erased(*tall)) return nullptr;
    if (path_->complete()) [[likely]]
      return tall;
    const Node* const next = nodes_.next_of(*tall, kTall - 1);
    return next != nullptr && bound.reaches(nodes_.key_of(*next)) ? nullptr : tall;
  }

  /// Adds a node to which the upper levels have led, if there is a path, the node is not the head
  /// and no other thread has its latch. Returns whether it has.
  bool add_passed(Node& node) const {
    if (path_ == nullptr || &node == &nodes_.head() || !path_->filling()) return false;
    LatchSet latches;
    if (!latches.try_add(nodes_.latch_of(node))) return false;
    return !is_erased(node) && path_->add(node);
  }

  /// Adds some nodes from a position on, which goes on. False if there are no more.
  bool fill_some(K& position) const {
    constexpr unsigned kNodesAtOnce = 64;
    const epoch::Guard guard;
    Node* node = descend_to_tall({position}).next;
    for (unsigned i = 0; i < kNodesAtOnce; ++i) {
      if (node == nullptr) return false;
      position = K(nodes_.key_of(*node));
      if (!add_passed(*node)) {
        nodes_.latch_of(*node).read_begin();  // waits for the writer that has it
        return path_->filling();
      }
      Node* const next = nodes_.next_of(*node, kTall - 1);
      if (is_erased(*node)) return true;  // from the position again
      node = next;
    }
    return true;
  }

  Nodes<K> nodes_;
  std::unique_ptr<NodePath> path_;  // null if the technique has none
  Resumption filling_;              // last: its thread ends before anything else goes away
};

}  // namespace perdix::detail::index::skiplist
