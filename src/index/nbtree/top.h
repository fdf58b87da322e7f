// The layers above the leaves: a B+-tree in DRAM that finds a position by its low bound, and with
// it the leaf that is there, so that a search need not wait for the position's memory, too.
//
//   build                            fills the tree on opening
//   floor, linked_floor, linked_below  search
//   add, remove, renew               a change, by the one writer that there is (top_writer.h)
//
// The tree may lag behind. It leads to the right position, to one at its left, or to one that was
// joined with its left neighbour; `next` of the leaves leads on. The leaf that it leads to may have
// been replaced, and then is closing. A replaced leaf is not retired before the tree has been told.
//
// Readers take no lock and do not wait: a node's keys never change, and a child pointer changes
// only to a copy of that child. The writer copies nodes, so each node is as large as it must be.
// (The paper shifts entries in place, which needs hardware transactions, and readers that notice
// it.)
//
// Invariants:
//   1. A node is released a grace period after no published root leads to it any more.
//   2. A change that fails for want of memory has changed nothing.
//
// Readers hold an epoch::Guard.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "epoch/reclaimer.h"
#include "index/nbtree/leaf.h"
#include "pm/probe.h"
#include "util/arena.h"
#include "util/rank.h"

namespace perdix::detail::index::nbtree {

/// A change requested for a position. Its top_state() has kAdd and kRemove when they were.
enum TopChange : std::uint8_t { kRenew = 0, kAdd = 1, kRemove = 2 };

/// The two other bits of a position's top_state(): which of these have been applied.
inline constexpr unsigned kAdded = kAdd << 2, kRemoved = kRemove << 2;

/// What the layers lead to: a position, and a leaf that was there. The leaf is null if it was cold.
template <class K>
struct TopSlot {
  Position<K>* at;
  Leaf<K>* leaf;
};

/// Two levels in one: a search compares all `firsts` together, and then the keys of one group.
template <class K>
struct TopNode {
  using Key = View<K>;

  static constexpr unsigned kGroups = 16;
  static constexpr unsigned kChildrenPerGroup = 4;
  static constexpr unsigned kFanout = kGroups * kChildrenPerGroup;

  /// What a child is: a node, or at level 0 a position and its leaf, in 32 bits each.
  using Below = std::uint64_t;

  struct Child {
    Key low;
    Below below;
  };

  /// Some children, and beside them the keys that separate them: so a search that has found a key
  /// has its child as well, and does not wait for memory again.
  struct Group {
    // Low bound of the first position below each child but the first.
    std::array<Key, kChildrenPerGroup - 1> keys;
    std::array<std::atomic<Below>, kChildrenPerGroup> children;
  };

  std::uint8_t level;  // 0: children are positions
  std::uint8_t count;
  std::array<Key, kGroups> firsts;  // low bound of the first position below each group
  Group groups[];  // of integers, the greatest one stands for keys that are not there

  static std::size_t bytes(unsigned count) {
    return sizeof(TopNode) + groups_for(count) * sizeof(Group);
  }
  static unsigned groups_for(unsigned count) {
    return (count + kChildrenPerGroup - 1) / kChildrenPerGroup;
  }

  Key& key(unsigned i) {
    return i % kChildrenPerGroup == 0
               ? firsts[i / kChildrenPerGroup]
               : groups[i / kChildrenPerGroup].keys[i % kChildrenPerGroup - 1];
  }
  Key key(unsigned i) const { return const_cast<TopNode*>(this)->key(i); }
  std::atomic<Below>& slot(unsigned i) {
    return groups[i / kChildrenPerGroup].children[i % kChildrenPerGroup];
  }
  Below below(unsigned i) const {
    return groups[i / kChildrenPerGroup].children[i % kChildrenPerGroup].load(
        std::memory_order_acquire);
  }
  TopNode* node(unsigned i) const { return reinterpret_cast<TopNode*>(below(i)); }
  Child as_child() { return {key(0), reinterpret_cast<std::uintptr_t>(this)}; }

  /// Prefetches as many lines as a node can have. How many it has would only be known from the
  /// first of them.
  void prefetch() const {
    for (std::size_t i = 0; i < bytes(kFanout); i += util::kCacheLine)
      __builtin_prefetch(reinterpret_cast<const char*>(this) + i);
  }
};

template <class K>
class TopLayer {
 public:
  using Key = View<K>;

  TopLayer(util::Arena& arena, epoch::Reclaimer& reclaimer) : arena_(arena), reclaimer_(reclaimer) {
    built_.reserve(kMaxNodes);
    replaced_.reserve(kMaxNodes);
  }
  TopLayer(const TopLayer&) = delete;
  TopLayer& operator=(const TopLayer&) = delete;

  /// What build() is given.
  struct Bound {
    Key low;
    Position<K>* position;
  };

  /// As many positions as build() puts into a node. Not as many as fit, so that positions that are
  /// added later do not soon split all nodes.
  static constexpr std::size_t kBuildFanout = 45;

  /// Fills the tree, which is empty, with `positions` positions in ascending order, at least one.
  /// next(bounds) fills a span with the next ones, at most kBuildFanout.
  template <class Next>
  void build(std::size_t positions, const Next& next);

  /// The position of the greatest low bound that is not above the key. It may have been joined, and
  /// its leaf replaced.
  TopSlot<K> floor(Key key) const {
    const Found found = find(Goal::floor(key));
    return slot_at(found.node->below(found.at));
  }

  /// Like floor(), of positions that have not been joined.
  Position<K>* linked_floor(Key key) const { return first_linked(find(Goal::floor(key))); }

  /// Like linked_floor(), of low bounds below the key, which is not the least one.
  Position<K>* linked_below(Key key) const { return first_linked(find(Goal::below(key))); }

  // For the writer. The first two throw std::bad_alloc.

  /// Adds a position. Returns the one that it takes the place of: one that had the same low bound
  /// and is no longer in the list; null if there was none.
  Position<K>* add(const Position<K>& position, Key low);

  /// Removes the position with this low bound.
  void remove(Key low);

  /// Stores a position's present leaf where searches find the position, if they do.
  void renew(const Position<K>& position, Key low);

 private:
  using Node = TopNode<K>;
  using Below = typename Node::Below;
  using Child = typename Node::Child;
  static constexpr unsigned kFanout = Node::kFanout;
  static constexpr unsigned kLeafShift = 32;
  static constexpr std::size_t kMaxLevels = 32;
  static constexpr std::size_t kMaxNodes = 2 * kMaxLevels + 1;  // that a change makes or replaces

  /// The children of a node, for making another one.
  struct Children {
    std::array<Child, kFanout + 1> items;
    unsigned count = 0;

    explicit Children(const Node& node) : count(node.count) {
      for (unsigned i = 0; i < count; ++i) items[i] = {node.key(i), node.below(i)};
    }
    void insert(unsigned at, Child child) {
      std::copy_backward(items.begin() + at, items.begin() + count, items.begin() + count + 1);
      items[at] = child;
      ++count;
    }
    void erase(unsigned at) {
      std::copy(items.begin() + at + 1, items.begin() + count, items.begin() + at);
      --count;
    }
  };

  /// What a search looks for: the greatest low bound that is not above a key, or that is below it.
  struct Goal {
    static Goal floor(Key key) { return {key, false}; }
    /// The key is not the least one.
    static Goal below(Key key) {
      if constexpr (std::is_integral_v<K>) {
        return {key - 1, false};
      } else {
        return {key, true};
      }
    }
    bool reached_by(Key low) const { return excluded ? low < key : !(key < low); }

    Key key;
    bool excluded;
  };

  /// What a search has found: a child of a node of the lowest level.
  struct Found {
    const Node* node;
    unsigned at;
  };

  /// What takes the place of a node after a change: the same one, one or two new ones, or none.
  struct Change {
    Node* first = nullptr;
    Node* second = nullptr;
  };

  /// As many children as a node may have.
  static unsigned fanout() {
    return static_cast<unsigned>(pm::limit("nbtree: children of a node", kFanout));
  }

  TopSlot<K> slot_at(Below below) const {
    return {
        static_cast<Position<K>*>(arena_.piece(static_cast<util::Arena::Ref>(below))),
        static_cast<Leaf<K>*>(arena_.piece(static_cast<util::Arena::Ref>(below >> kLeafShift)))};
  }
  Below below_of(const Position<K>& position) const;

  Found find(Goal goal) const;
  Position<K>* first_linked(Found found) const;
  static unsigned last_reached(const Node& node, Goal goal);

  Node* make(unsigned level, const Child* begin, const Child* end);
  Node* make_new(unsigned level, const Child* begin, const Child* end);
  void discard(Node* node) { arena_.release(node, Node::bytes(node->count)); }
  Change node_with(unsigned level, const Children& children, unsigned added);
  static bool same_key(Key a, Key b);
  Change with_child(Node& node, unsigned at, Change below);
  Change add(Node& node, Child position);
  Change remove(Node& node, Key low);
  template <class Make>
  void change(const Make& make);
  void set_root(Node* root, Change change);
  void retire(Node* node);

  util::Arena& arena_;
  epoch::Reclaimer& reclaimer_;
  std::atomic<Node*> root_{nullptr};

  // Of the change that the writer is making. The vectors have room for all nodes of one.
  std::vector<Node*> built_;          // nodes that the change has made
  std::vector<Node*> replaced_;       // nodes that it has replaced
  Position<K>* displaced_ = nullptr;  // the position that it has replaced by one of the same bound
};

template <class K>
[[gnu::always_inline]] inline auto TopLayer<K>::find(Goal goal) const -> Found {
  const Node* node = root_.load(std::memory_order_acquire);
  for (;;) {
    const unsigned at = last_reached(*node, goal);
    if (node->level == 0) return {node, at};
    // Only nodes of the lowest level are prefetched: those above are usually in the caches.
    const bool at_last_but_one = node->level == 1;
    node = node->node(at);
    if (at_last_but_one) node->prefetch();
  }
}

/// The position that was found, or the first one at its left that has a leaf.
template <class K>
Position<K>* TopLayer<K>::first_linked(Found found) const {
  for (;;) {
    Position<K>* at = slot_at(found.node->below(found.at)).at;
    if (at->leaf.load() != nullptr) return at;
    pm::on_step("nbtree: pass a position that is joined");
    found = find(Goal::below(found.node->key(found.at)));
  }
}

/// The word by which a search finds a position and its present leaf.
template <class K>
auto TopLayer<K>::below_of(const Position<K>& position) const -> Below {
  const Leaf<K>* leaf = position.leaf.load();
  return arena_.ref(&position) | Below{is_cold(leaf) ? 0 : arena_.ref(leaf)} << kLeafShift;
}

/// The number of the last key of a node that reaches the goal; 0 if none does.
template <class K>
[[gnu::always_inline]] inline unsigned TopLayer<K>::last_reached(const Node& node, Goal goal) {
  if constexpr (std::is_integral_v<K>) {
    // Without a branch on a key, which would be mispredicted half of the time. Then nothing of the
    // caller's next lookup could begin before the key has come from memory.
    const unsigned group =
        std::clamp(util::count_not_above(node.firsts, goal.key), 1U, Node::groups_for(node.count)) -
        1;
    const unsigned in_group = util::count_not_above(node.groups[group].keys, goal.key);
    return std::min(group * Node::kChildrenPerGroup + in_group, node.count - 1U);
  } else {
    unsigned count = 0;
    for (unsigned end = node.count; count < end;) {
      const unsigned middle = (count + end) / 2;
      if (goal.reached_by(node.key(middle)))
        count = middle + 1;
      else
        end = middle;
    }
    return std::max(count, 1U) - 1;
  }
}

template <class K>
template <class Next>
void TopLayer<K>::build(std::size_t positions, const Next& next) {
  const auto make_from = [this](unsigned level, std::span<const Child> children) {
    return make(level, children.data(), children.data() + children.size())->as_child();
  };
  const std::size_t most = std::min<std::size_t>(kBuildFanout, fanout());
  std::vector<Child> lower;
  lower.reserve(positions / most + 1);
  std::array<Bound, kBuildFanout> some;
  std::array<Child, kBuildFanout> children;
  for (std::size_t left = positions; left > 0;) {
    const std::span<Bound> bounds(some.data(), std::min(most, left));
    next(bounds);
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      bounds[i].position->add_top_state(kAdd | kAdded);
      children[i] = {bounds[i].low, below_of(*bounds[i].position)};
    }
    lower.push_back(make_from(0, std::span(children.data(), bounds.size())));
    left -= bounds.size();
  }
  for (unsigned level = 1; lower.size() > 1; ++level) {
    std::vector<Child> above;
    for (std::size_t i = 0; i < lower.size(); i += most)
      above.push_back(
          make_from(level, std::span(lower).subspan(i, std::min(most, lower.size() - i))));
    lower = std::move(above);
  }
  root_.store(reinterpret_cast<Node*>(lower[0].below), std::memory_order_release);
}

template <class K>
auto TopLayer<K>::make(unsigned level, const Child* begin, const Child* end) -> Node* {
  const auto count = static_cast<unsigned>(end - begin);
  Node* node = new (arena_.allocate(Node::bytes(count))) Node;
  node->level = static_cast<std::uint8_t>(level);
  node->count = static_cast<std::uint8_t>(count);
  Child none{};
  if constexpr (std::is_integral_v<K>) none.low = std::numeric_limits<K>::max();
  node->firsts.fill(none.low);
  for (unsigned i = 0; i < Node::groups_for(count) * Node::kChildrenPerGroup; ++i) {
    const Child& child = i < count ? begin[i] : none;
    node->key(i) = child.low;
    node->slot(i).store(child.below, std::memory_order_relaxed);
  }
  return node;
}

/// make() as a part of a change, which discards the node if it fails later.
template <class K>
auto TopLayer<K>::make_new(unsigned level, const Child* begin, const Child* end) -> Node* {
  return built_.emplace_back(make(level, begin, end));
}

/// A node with these children, of which one was just added; two nodes if one can't hold them.
template <class K>
auto TopLayer<K>::node_with(unsigned level, const Children& children, unsigned added) -> Change {
  const Child* begin = children.items.data();
  const Child* end = begin + children.count;
  const unsigned most = fanout();
  if (children.count <= most) return {make_new(level, begin, end)};
  // A child that was added behind all others gets a node of its own, since more are likely to
  // follow: so ascending loads fill nodes.
  const Child* half = begin + (added == most ? most : children.count / 2);
  Node* first = make_new(level, begin, half);
  return {first, make_new(level, half, end)};
}

/// Whether two keys are the same; of strings, whether they are the same bytes in memory, which
/// belong to a position and are released with it.
template <class K>
bool TopLayer<K>::same_key(Key a, Key b) {
  if constexpr (std::is_same_v<K, std::string>) {
    return a.data() == b.data() && a.size() == b.size();
  } else {
    return a == b;
  }
}

/// What takes the place of a node when its child `at` has become what `below` says. If one store in
/// the node is enough, makes it: this publishes what was built, and nothing can fail after it.
template <class K>
auto TopLayer<K>::with_child(Node& node, unsigned at, Change below) -> Change {
  Node* child = node.node(at);
  if (below.first == child) return {&node};
  Change change{&node};
  if (below.first == nullptr && node.count == 1) {
    change = {};
  } else if (below.first == nullptr || below.second != nullptr ||
             !same_key(below.first->key(0), node.key(at))) {
    Children children(node);
    children.erase(at);
    if (below.first != nullptr) children.insert(at, below.first->as_child());
    if (below.second != nullptr) children.insert(at + 1, below.second->as_child());
    change = node_with(node.level, children, at + 1);
  } else {
    pm::on_step("nbtree: publish a node");
    node.slot(at).store(below.first->as_child().below, std::memory_order_release);
  }
  replaced_.push_back(child);
  return change;
}

template <class K>
auto TopLayer<K>::add(Node& node, Child position) -> Change {
  const unsigned at = last_reached(node, Goal::floor(position.low));
  if (node.level == 0) {
    Children children(node);
    if (node.key(at) == position.low) {  // of a position that is no longer in the list
      displaced_ = slot_at(node.below(at)).at;
      children.items[at] = position;
    } else {
      children.insert(at + 1, position);
    }
    return node_with(0, children, at + 1);
  }
  return with_child(node, at, add(*node.node(at), position));
}

template <class K>
auto TopLayer<K>::remove(Node& node, Key removed) -> Change {
  const unsigned at = last_reached(node, Goal::floor(removed));
  if (node.level != 0) return with_child(node, at, remove(*node.node(at), removed));
  if (node.count == 1) return {};
  Children children(node);
  children.erase(at);
  return node_with(0, children, at);
}

template <class K>
void TopLayer<K>::retire(Node* node) {
  reclaimer_.retire(
      node,
      [](void* object, void* arena) {
        const unsigned count = static_cast<Node*>(object)->count;
        static_cast<util::Arena*>(arena)->release(object, Node::bytes(count));
      },
      &arena_);
}

/// Makes a change: make(root) says what takes the root's place. Throws std::bad_alloc, and nothing
/// has changed then.
template <class K>
template <class Make>
void TopLayer<K>::change(const Make& make) {
  built_.clear();
  replaced_.clear();
  Node* const root = root_.load(std::memory_order_relaxed);
  try {
    set_root(root, make(*root));
  } catch (const std::bad_alloc&) {
    for (Node* node : built_) discard(node);
    throw;
  }
  for (Node* node : replaced_) retire(node);
}

template <class K>
Position<K>* TopLayer<K>::add(const Position<K>& position, Key low) {
  displaced_ = nullptr;
  change([&](Node& root) { return add(root, {low, below_of(position)}); });
  return displaced_;
}

template <class K>
void TopLayer<K>::remove(Key low) {
  change([&](Node& root) { return remove(root, low); });
}

template <class K>
void TopLayer<K>::renew(const Position<K>& position, Key low) {
  Node* node = root_.load(std::memory_order_relaxed);
  const Goal goal = Goal::floor(low);
  while (node->level != 0) node = node->node(last_reached(*node, goal));
  const unsigned at = last_reached(*node, goal);
  if (slot_at(node->below(at)).at != &position) return;
  pm::on_step("nbtree: renew a leaf");
  node->slot(at).store(below_of(position), std::memory_order_release);
}

/// Publishes the root after a change.
template <class K>
void TopLayer<K>::set_root(Node* root, Change change) {
  if (change.first == root) return;
  if (change.second != nullptr) {
    const std::array<Child, 2> both{change.first->as_child(), change.second->as_child()};
    pm::on_step("nbtree: the root splits");
    change.first = make_new(root->level + 1U, both.data(), both.data() + both.size());
  }
  Node* top = change.first;
  // A root with one child is replaced by the child. The first such root is new, but those below it
  // need not be, and readers may reach them from the old root. So all of them are retired.
  for (; top->level != 0 && top->count == 1; top = top->node(0)) {
    pm::on_step("nbtree: the root has one child");
    replaced_.push_back(top);
  }
  pm::on_step("nbtree: publish a root");
  root_.store(top, std::memory_order_release);
  replaced_.push_back(root);
}

}  // namespace perdix::detail::index::nbtree
