// The layers above the leaves: a B+-tree in DRAM that finds a position by its low bound.
//
// It may lag behind: it leads to the right position or to one at its left, or to one that was
// joined with its left neighbour; `next` of the leaves leads on.
//
// Readers take no lock and wait for nobody: a node's keys never change, and a child pointer changes
// to a copy of that child only. Writers copy nodes (the paper shifts entries in place, which needs
// hardware transactions, and readers that notice it). One at a time writes: whoever wants something
// of it leaves a wish at the position and tries the lock; if another holds it, that one grants the
// wish, or the next who comes by. So nobody waits for a suspended writer either.
//
// Readers and whoever calls wish() hold an epoch::Guard.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "epoch/reclaimer.h"
#include "index/nbtree/leaf.h"
#include "util/arena.h"
#include "util/spin_lock.h"
#include "util/stripe.h"

namespace perdix::index::nbtree {

template <class K>
class Top {
 public:
  using Key = View<K>;

  /// Disposes of a position that is out of reach of new readers.
  using Release = void (*)(void* position, void* context);

  Top(util::Arena& arena, epoch::Reclaimer& reclaimer, Release release, void* context)
      : arena_(arena), reclaimer_(reclaimer), release_(release), context_(context) {}
  Top(const Top&) = delete;
  Top& operator=(const Top&) = delete;

  /// Fills the tree, which was empty, with positions in ascending order, at least one.
  void build(const std::vector<Position<K>*>& positions);

  /// The position of the greatest low bound that is not above the key.
  Position<K>* floor(Key key) const {
    return find(key, [](Key a, Key b) { return !(b < a); });
  }

  /// The same, but below the key; the key is not the least one.
  Position<K>* below(Key key) const {
    return find(key, [](Key a, Key b) { return a < b; });
  }

  enum Wish : std::uint8_t { kAdd = 1, kRemove = 2, kQueued = 4 };

  /// Adds a position, or removes it and then releases it. Each once, in any order; the first
  /// position of all is never removed. If a position is added with the low bound of another one,
  /// that one is gone from the list and takes no part in searches any more.
  void wish(Position<K>& position, Wish what);

 private:
  static constexpr unsigned kFanout = 60;
  static constexpr std::size_t kMostLevels = 32;

  struct Node {
    bool bottom = true;  // children are positions
    unsigned count = 0;
    std::array<Key, kFanout> keys;  // low bound of the first position below each child
    std::array<std::atomic<void*>, kFanout> children;

    Node* node(unsigned i) const {
      return static_cast<Node*>(children[i].load(std::memory_order_acquire));
    }
    Position<K>* position(unsigned i) const {
      return static_cast<Position<K>*>(children[i].load(std::memory_order_acquire));
    }
    /// Asks for the children, of which a search needs one, so that it waits for memory once.
    void prefetch_children() const {
      for (std::size_t i = 0; i < sizeof children; i += util::kCacheLine)
        __builtin_prefetch(reinterpret_cast<const char*>(&children) + i);
    }
    void set(unsigned i, Key key, void* child) {
      keys[i] = key;
      children[i].store(child, std::memory_order_relaxed);
    }
  };

  /// What becomes of a node: the same one, one or two copies, or none.
  struct Change {
    Node* first = nullptr;
    Node* second = nullptr;
  };

  template <class Reaches>
  Position<K>* find(Key key, Reaches reaches) const;
  template <class Reached>
  static unsigned last(const Node& node, Reached reached);

  Node* copy(const Node& node, unsigned begin, unsigned end);
  Node* make(bool bottom) {
    Node* node = new (arena_.allocate(sizeof(Node))) Node;
    if constexpr (std::is_integral_v<K>) node->keys.fill(std::numeric_limits<K>::max());
    node->bottom = bottom;
    return node;
  }
  Change with_child(const Node& node, unsigned at, Key key, void* child);
  Change with_successor(const Node& node, unsigned at, Position<K>& position);
  static bool same_key(Key a, Key b);
  Change replaced(Node& node, unsigned at, Change below);
  Change add(Node& node, Position<K>& position);
  Change remove(Node& node, Position<K>& position);
  void retire(Node* node);
  void grant_all();
  void grant(Position<K>& position);
  void set_root(Node* root, Change change);

  util::Arena& arena_;
  epoch::Reclaimer& reclaimer_;
  Release release_;
  void* context_;
  std::atomic<Node*> root_{nullptr};
  std::atomic<Position<K>*> wishes_{nullptr};  // a stack, all of which is taken at once
  util::SpinLock writer_;
  std::vector<Node*> replaced_;       // by copies, in the change that the writer is at
  Position<K>* succeeded_ = nullptr;  // by a new one, in that change
};

template <class K>
template <class Reaches>
Position<K>* Top<K>::find(Key key, Reaches reaches) const {
  const Node* node = root_.load(std::memory_order_acquire);
  for (;;) {
    node->prefetch_children();
    const auto reached = [&](Key low) { return reaches(low, key); };
    void* child = node->children[last(*node, reached)].load(std::memory_order_acquire);
    if (node->bottom) return static_cast<Position<K>*>(child);
    node = static_cast<const Node*>(child);
  }
}

/// The last of the node's keys that reached(key) is true for; the first one, if it is for none.
template <class K>
template <class Reached>
unsigned Top<K>::last(const Node& node, Reached reached) {
  unsigned count = 0;
  if constexpr (std::is_integral_v<K>) {
    // All of them, without a branch: their lines are waited for together. Those behind the last one
    // are the greatest key.
    for (const Key low : node.keys) count += reached(low) ? 1 : 0;
    count = std::min(count, node.count);
  } else {
    const auto begin = node.keys.begin();
    count = static_cast<unsigned>(std::partition_point(begin, begin + node.count, reached) - begin);
  }
  return std::max(count, 1U) - 1;
}

template <class K>
void Top<K>::build(const std::vector<Position<K>*>& positions) {
  constexpr unsigned kFill = kFanout * 3 / 4;  // room to grow
  std::vector<Node*> level;
  for (std::size_t i = 0; i < positions.size(); i += kFill) {
    Node* node = level.emplace_back(make(true));
    for (std::size_t j = i; j < std::min(i + kFill, positions.size()); ++j) {
      positions[j]->done = kAdd;
      positions[j]->wishes.store(kAdd, std::memory_order_relaxed);
      node->set(node->count++, positions[j]->low, positions[j]);
    }
  }
  while (level.size() > 1) {
    std::vector<Node*> above;
    for (std::size_t i = 0; i < level.size(); i += kFill) {
      Node* node = above.emplace_back(make(false));
      for (std::size_t j = i; j < std::min(i + kFill, level.size()); ++j)
        node->set(node->count++, level[j]->keys[0], level[j]);
    }
    level = std::move(above);
  }
  root_.store(level[0], std::memory_order_release);
}

template <class K>
auto Top<K>::copy(const Node& node, unsigned begin, unsigned end) -> Node* {
  Node* fresh = make(node.bottom);
  for (unsigned i = begin; i < end; ++i)
    fresh->set(fresh->count++, node.keys[i], node.children[i].load(std::memory_order_relaxed));
  return fresh;
}

/// The node with one more child, at `at`; as two nodes if one can't hold them.
template <class K>
auto Top<K>::with_child(const Node& node, unsigned at, Key key, void* child) -> Change {
  const unsigned half = node.count < kFanout ? node.count : at == node.count ? at : node.count / 2;
  Change change{copy(node, 0, half), nullptr};
  try {
    if (node.count == kFanout) change.second = copy(node, half, node.count);
  } catch (const std::bad_alloc&) {
    arena_.release(change.first, sizeof(Node));
    throw;
  }
  const bool right = change.second != nullptr && (at > half || at == node.count);
  Node& into = right ? *change.second : *change.first;
  if (right) at -= half;
  for (unsigned i = into.count; i > at; --i)
    into.set(i, into.keys[i - 1], into.children[i - 1].load(std::memory_order_relaxed));
  into.set(at, key, child);
  ++into.count;
  return change;
}

/// The node with a new position in place of a gone one that has the same low bound.
template <class K>
auto Top<K>::with_successor(const Node& node, unsigned at, Position<K>& position) -> Change {
  Node* fresh = copy(node, 0, node.count);
  fresh->set(at, position.low, &position);
  succeeded_ = node.position(at);
  return {fresh};
}

/// Whether it is the same key, and of a string the same bytes in memory: they go with their
/// position.
template <class K>
bool Top<K>::same_key(Key a, Key b) {
  if constexpr (std::is_same_v<K, std::string>) {
    return a.data() == b.data() && a.size() == b.size();
  } else {
    return a == b;
  }
}

/// The node after its child `at` has become what `below` says.
template <class K>
auto Top<K>::replaced(Node& node, unsigned at, Change below) -> Change {
  Node* child = node.node(at);
  if (below.first == child) return {&node};
  Change change{&node};
  if (below.first == nullptr) {
    if (node.count == 1) {
      change = {};
    } else {
      Node* fresh = copy(node, 0, node.count - 1);
      for (unsigned i = at; i < fresh->count; ++i)
        fresh->set(i, node.keys[i + 1], node.children[i + 1].load(std::memory_order_relaxed));
      change = {fresh};
    }
  } else if (below.second != nullptr) {
    change = with_child(node, at + 1, below.second->keys[0], below.second);
    Node& left = at < change.first->count ? *change.first : *change.second;
    const unsigned i = at < change.first->count ? at : at - change.first->count;
    left.set(i, below.first->keys[0], below.first);
  } else if (!same_key(below.first->keys[0], node.keys[at])) {
    Node* fresh = copy(node, 0, node.count);
    fresh->set(at, below.first->keys[0], below.first);
    change = {fresh};
  } else {
    node.children[at].store(below.first, std::memory_order_release);
  }
  replaced_.push_back(child);
  return change;
}

template <class K>
auto Top<K>::add(Node& node, Position<K>& position) -> Change {
  const unsigned at = last(node, [&](Key low) { return !(position.low < low); });
  if (node.bottom) {
    if (node.keys[at] == position.low) return with_successor(node, at, position);
    return with_child(node, at + 1, position.low, &position);
  }
  const Change below = add(*node.node(at), position);
  try {
    return replaced(node, at, below);
  } catch (const std::bad_alloc&) {
    arena_.release(below.first, sizeof(Node));
    if (below.second != nullptr) arena_.release(below.second, sizeof(Node));
    throw;
  }
}

template <class K>
auto Top<K>::remove(Node& node, Position<K>& position) -> Change {
  const unsigned at = last(node, [&](Key low) { return !(position.low < low); });
  if (!node.bottom) {
    const Change below = remove(*node.node(at), position);
    try {
      return replaced(node, at, below);
    } catch (const std::bad_alloc&) {
      if (below.first != nullptr && below.first != node.node(at))
        arena_.release(below.first, sizeof(Node));
      throw;
    }
  }
  if (node.count == 1) return {};
  Node* fresh = copy(node, 0, node.count - 1);
  for (unsigned i = at; i < fresh->count; ++i)
    fresh->set(i, node.keys[i + 1], node.children[i + 1].load(std::memory_order_relaxed));
  return {fresh};
}

template <class K>
void Top<K>::retire(Node* node) {
  reclaimer_.retire(
      node,
      [](void* object, void* arena) {
        static_cast<util::Arena*>(arena)->release(object, sizeof(Node));
      },
      &arena_);
}

template <class K>
void Top<K>::wish(Position<K>& position, Wish what) {
  const auto before = position.wishes.fetch_or(static_cast<std::uint8_t>(what | kQueued));
  if ((before & kQueued) == 0) {
    Position<K>* head = wishes_.load(std::memory_order_relaxed);
    do {
      position.next_wish = head;
    } while (!wishes_.compare_exchange_weak(head, &position));
  }
  grant_all();
}

template <class K>
void Top<K>::grant_all() {
  // Looks again after it has let go of the lock: whoever came meanwhile has left it to us.
  while (wishes_.load() != nullptr) {
    if (!writer_.try_lock()) return;
    const std::lock_guard lock(writer_, std::adopt_lock);
    Position<K>* position = wishes_.exchange(nullptr);
    while (position != nullptr) {
      Position<K>* following = position->next_wish;
      try {
        grant(*position);
      } catch (const std::bad_alloc&) {
        // The tree lags behind for ever; `next` of the leaf at the left still leads there.
      }
      position = following;
    }
  }
}

template <class K>
void Top<K>::grant(Position<K>& position) {
  const auto wishes = position.wishes.fetch_and(static_cast<std::uint8_t>(~kQueued));
  const bool gone = (wishes & kRemove) != 0;
  Node* root = root_.load(std::memory_order_relaxed);
  replaced_.clear();
  replaced_.reserve(kMostLevels);
  // What has gone before it came need not come: another one may have its bound by now.
  if (position.done == 0 && position.leaf.load() == nullptr) position.done = kAdd | kRemove;
  if (!gone && position.done == 0) {
    succeeded_ = nullptr;
    set_root(root, add(*root, position));
    position.done = kAdd;
    if (succeeded_ != nullptr) succeeded_->done |= kRemove;
  } else if (gone && position.done == kAdd) {
    set_root(root, remove(*root, position));
    position.done = kAdd | kRemove;
  }
  for (Node* node : replaced_) retire(node);
  // Both wishes have come, so nobody will name it any more.
  if (gone && (wishes & kAdd) != 0) reclaimer_.retire(&position, release_, context_);
}

/// Makes what a change has left of the root the new one.
template <class K>
void Top<K>::set_root(Node* root, Change change) {
  if (change.first == root) return;
  if (change.second != nullptr) {
    Node* above = make(false);
    above->set(0, change.first->keys[0], change.first);
    above->set(1, change.second->keys[0], change.second);
    above->count = 2;
    change.first = above;
  }
  while (!change.first->bottom && change.first->count == 1) {
    Node* single = change.first;
    change.first = single->node(0);
    arena_.release(single, sizeof(Node));
  }
  root_.store(change.first, std::memory_order_release);
  replaced_.push_back(root);
}

}  // namespace perdix::index::nbtree
