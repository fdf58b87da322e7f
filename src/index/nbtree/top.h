// The layers above the leaves: a B+-tree in DRAM that finds a position by its low bound, and the
// leaf that is there, so that a search need not wait for the position's memory, too.
//
// It may lag behind: it leads to the right position or to one at its left, or to one that was
// joined with its left neighbour; `next` of the leaves leads on. The leaf may have been replaced,
// and then is closing; it is not retired before the tree has heard of it.
//
// Readers take no lock and wait for nobody: a node's keys never change, and a child pointer changes
// to a copy of that child only. Writers copy nodes (the paper shifts entries in place, which needs
// hardware transactions, and readers that notice it), so each is as large as it must be. One at a
// time writes: whoever wants something of it leaves a wish and tries the lock; if another holds it,
// that one grants the wish, or the next who comes by. So nobody waits for a suspended writer
// either.
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
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "epoch/reclaimer.h"
#include "index/nbtree/leaf.h"
#include "util/arena.h"
#include "util/rank.h"
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

  struct Bound {
    Key low;
    Position<K>* position;
  };

  /// A position, and a leaf that was there; null if that is not known.
  struct Spot {
    Position<K>* at;
    Leaf<K>* leaf;
  };

  /// As many positions as build() fills a node with: what comes later splits few of them at once.
  static constexpr std::size_t kBuilt = 45;

  /// Fills the tree, which was empty, with so many positions in ascending order, at least one:
  /// next(bounds) has the next ones, as many as the array has, which are up to kBuilt.
  template <class Next>
  void build(std::size_t positions, const Next& next);

  /// The position of the greatest low bound that is not above the key. It may have been joined, and
  /// its leaf replaced.
  Spot floor(Key key) const {
    const Found found = find(Goal::floor(key));
    return spot(found.node->below(found.at));
  }

  /// The same, leaving out those that have been joined.
  Position<K>* linked_floor(Key key) const { return linked(find(Goal::floor(key))); }

  /// The same, but below the key; the key is not the least one.
  Position<K>* linked_below(Key key) const { return linked(find(Goal::below(key))); }

  enum Wish : std::uint8_t { kRenew = 0, kAdd = 1, kRemove = 2 };

  /// Adds a position, or removes it and then releases it. Each once, in any order; the first
  /// position of all is never removed. If a position is added with the low bound of another one,
  /// that one is gone from the list and takes no part in searches any more.
  ///
  /// To be removed, or renewed: `former` is no more the position's leaf. It is retired when no
  /// search finds it any more.
  void wish(Position<K>& position, Wish what, Leaf<K>* former = nullptr);

  /// Has searches find the leaves of these positions, which were cold. Does nothing if another
  /// thread is writing: a search then asks the position.
  void renew(std::span<Position<K>* const> positions);

 private:
  static constexpr unsigned kGroups = 16;
  static constexpr unsigned kOfAGroup = 4;
  static constexpr unsigned kFanout = kGroups * kOfAGroup;
  static constexpr std::size_t kMostLevels = 32;

  // What a position has in its four bits: which wishes have come, and which were granted.
  static constexpr unsigned kCome = kAdd | kRemove, kGrantedShift = 2;
  static constexpr unsigned kAdded = kAdd << kGrantedShift, kRemoved = kRemove << kGrantedShift;

  /// What a child is: a node, or at level 0 a position and its leaf, in 32 bits each.
  using Below = std::uint64_t;
  static constexpr unsigned kLeafShift = 32;

  struct Child {
    Key low;
    Below below;
  };

  /// Some children, and beside them the keys that tell them apart: so a search that has found a key
  /// has its child as well, and does not wait for memory again.
  struct Group {
    std::array<Key, kOfAGroup - 1>
        keys;  // low bound of the first position below each but the first
    std::array<std::atomic<Below>, kOfAGroup> children;
  };

  /// Two levels in one: a search compares all `firsts` at once, and then the keys of one group.
  struct Node {
    std::uint8_t level;  // 0: children are positions
    std::uint8_t count;
    std::array<Key, kGroups> firsts;  // low bound of the first position below each group
    Group groups[];  // in place of keys that are not there is the greatest, if they are integers

    static std::size_t bytes(unsigned count) {
      return sizeof(Node) + groups_for(count) * sizeof(Group);
    }
    static unsigned groups_for(unsigned count) { return (count + kOfAGroup - 1) / kOfAGroup; }

    Key& key(unsigned i) {
      return i % kOfAGroup == 0 ? firsts[i / kOfAGroup]
                                : groups[i / kOfAGroup].keys[i % kOfAGroup - 1];
    }
    Key key(unsigned i) const { return const_cast<Node*>(this)->key(i); }
    std::atomic<Below>& slot(unsigned i) { return groups[i / kOfAGroup].children[i % kOfAGroup]; }
    Below below(unsigned i) const {
      return groups[i / kOfAGroup].children[i % kOfAGroup].load(std::memory_order_acquire);
    }
    Node* node(unsigned i) const { return node_of(below(i)); }

    /// Asks for as many lines as a node can have: how many it has says the first of them.
    void prefetch() const {
      for (std::size_t i = 0; i < bytes(kFanout); i += util::kCacheLine)
        __builtin_prefetch(reinterpret_cast<const char*>(this) + i);
    }
  };

  /// What a node has, or shall have.
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

  /// What it has found, in a node of the lowest level.
  struct Found {
    const Node* node;
    unsigned at;
  };

  /// What becomes of a node: the same one, one or two new ones, or none.
  struct Change {
    Node* first = nullptr;
    Node* second = nullptr;
  };

  /// What somebody has wished for.
  struct Wanted {
    Position<K>* position;
    Key low;  // the position's anchor may be another's when the wish is granted
    Wish what;
    Leaf<K>* former;
    Wanted* next;
  };

  static Node* node_of(Below below) { return reinterpret_cast<Node*>(below); }
  static Child child_of(Node* node) {
    return {node->key(0), reinterpret_cast<std::uintptr_t>(node)};
  }
  Spot spot(Below below) const {
    return {
        static_cast<Position<K>*>(arena_.piece(static_cast<util::Arena::Ref>(below))),
        static_cast<Leaf<K>*>(arena_.piece(static_cast<util::Arena::Ref>(below >> kLeafShift)))};
  }
  Below below_of(const Position<K>& position) const;

  Found find(Goal goal) const;
  Position<K>* linked(Found found) const;
  static unsigned last(const Node& node, Goal goal);

  Node* make(unsigned level, const Child* begin, const Child* end);
  void discard(Node* node) { arena_.release(node, Node::bytes(node->count)); }
  Change with(unsigned level, const Children& children, unsigned added);
  static bool same_key(Key a, Key b);
  Change replaced(Node& node, unsigned at, Change below);
  Change add(Node& node, Child position);
  Change remove(Node& node, Key low);
  void retire(Node* node);
  void retire(Leaf<K>* leaf);
  void grant_all();
  void grant(const Wanted& wanted);
  void renew(const Position<K>& position, Key low);
  void set_root(Node* root, Change change);

  util::Arena& arena_;
  epoch::Reclaimer& reclaimer_;
  Release release_;
  void* context_;
  std::atomic<Node*> root_{nullptr};
  std::atomic<Wanted*> wishes_{nullptr};  // a stack, all of which is taken at once
  util::SpinLock writer_;
  std::vector<Node*> replaced_;       // by others, in the change that the writer is at
  Position<K>* succeeded_ = nullptr;  // by a new one, in that change
};

template <class K>
[[gnu::always_inline]] inline auto Top<K>::find(Goal goal) const -> Found {
  const Node* node = root_.load(std::memory_order_acquire);
  for (;;) {
    const unsigned at = last(*node, goal);
    if (node->level == 0) return {node, at};
    // The levels above are in the caches, as long as the lines of the lowest leave them alone.
    const bool at_last_but_one = node->level == 1;
    node = node->node(at);
    if (at_last_but_one) node->prefetch();
  }
}

/// From what was found to the first one at its left that has a leaf.
template <class K>
Position<K>* Top<K>::linked(Found found) const {
  for (;;) {
    Position<K>* at = spot(found.node->below(found.at)).at;
    if (at->leaf.load() != nullptr) return at;
    found = find(Goal::below(found.node->key(found.at)));
  }
}

/// What a search finds of a position from now on.
template <class K>
auto Top<K>::below_of(const Position<K>& position) const -> Below {
  const Leaf<K>* leaf = position.leaf.load();
  return arena_.ref(&position) | Below{is_cold(leaf) ? 0 : arena_.ref(leaf)} << kLeafShift;
}

/// The last of the node's keys that reaches the goal; the first one, if none does.
template <class K>
[[gnu::always_inline]] inline unsigned Top<K>::last(const Node& node, Goal goal) {
  if constexpr (std::is_integral_v<K>) {
    // Without a branch on a key, which would be guessed wrong as often as not: then nothing of the
    // caller's next lookup could begin before the key has come from memory.
    const unsigned group =
        std::clamp(util::count_not_above(node.firsts, goal.key), 1U, Node::groups_for(node.count)) -
        1;
    const unsigned in_group = util::count_not_above(node.groups[group].keys, goal.key);
    return std::min(group * kOfAGroup + in_group, node.count - 1U);
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
void Top<K>::build(std::size_t positions, const Next& next) {
  const auto make_from = [this](unsigned level, std::span<const Child> children) {
    return child_of(make(level, children.data(), children.data() + children.size()));
  };
  std::vector<Child> lower;
  lower.reserve(positions / kBuilt + 1);
  std::array<Bound, kBuilt> some;
  std::array<Child, kBuilt> children;
  for (std::size_t left = positions; left > 0;) {
    const std::span<Bound> bounds(some.data(), std::min(kBuilt, left));
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
    for (std::size_t i = 0; i < lower.size(); i += kBuilt)
      above.push_back(
          make_from(level, std::span(lower).subspan(i, std::min(kBuilt, lower.size() - i))));
    lower = std::move(above);
  }
  root_.store(node_of(lower[0].below), std::memory_order_release);
}

template <class K>
auto Top<K>::make(unsigned level, const Child* begin, const Child* end) -> Node* {
  const auto count = static_cast<unsigned>(end - begin);
  Node* node = new (arena_.allocate(Node::bytes(count))) Node;
  node->level = static_cast<std::uint8_t>(level);
  node->count = static_cast<std::uint8_t>(count);
  Child none{};
  if constexpr (std::is_integral_v<K>) none.low = std::numeric_limits<K>::max();
  node->firsts.fill(none.low);
  for (unsigned i = 0; i < Node::groups_for(count) * kOfAGroup; ++i) {
    const Child& child = i < count ? begin[i] : none;
    node->key(i) = child.low;
    node->slot(i).store(child.below, std::memory_order_relaxed);
  }
  return node;
}

/// A node with these children, of which one was just added; two nodes if one can't hold them.
template <class K>
auto Top<K>::with(unsigned level, const Children& children, unsigned added) -> Change {
  const Child* begin = children.items.data();
  const Child* end = begin + children.count;
  if (children.count <= kFanout) return {make(level, begin, end)};
  // Behind the last one there may come more: then nodes become full.
  const Child* half = begin + (added == kFanout ? kFanout : children.count / 2);
  Change change{make(level, begin, half)};
  try {
    change.second = make(level, half, end);
  } catch (const std::bad_alloc&) {
    discard(change.first);
    throw;
  }
  return change;
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
  if (below.first == nullptr && node.count == 1) {
    change = {};
  } else if (below.first == nullptr || below.second != nullptr ||
             !same_key(below.first->key(0), node.key(at))) {
    Children children(node);
    children.erase(at);
    if (below.first != nullptr) children.insert(at, child_of(below.first));
    if (below.second != nullptr) children.insert(at + 1, child_of(below.second));
    change = with(node.level, children, at + 1);
  } else {
    node.slot(at).store(child_of(below.first).below, std::memory_order_release);
  }
  replaced_.push_back(child);
  return change;
}

template <class K>
auto Top<K>::add(Node& node, Child position) -> Change {
  const unsigned at = last(node, Goal::floor(position.low));
  if (node.level == 0) {
    Children children(node);
    if (node.key(at) == position.low) {  // of one that is gone
      succeeded_ = spot(node.below(at)).at;
      children.items[at] = position;
    } else {
      children.insert(at + 1, position);
    }
    return with(0, children, at + 1);
  }
  const Change below = add(*node.node(at), position);
  try {
    return replaced(node, at, below);
  } catch (const std::bad_alloc&) {
    discard(below.first);
    if (below.second != nullptr) discard(below.second);
    throw;
  }
}

template <class K>
auto Top<K>::remove(Node& node, Key removed) -> Change {
  const unsigned at = last(node, Goal::floor(removed));
  if (node.level != 0) {
    const Change below = remove(*node.node(at), removed);
    try {
      return replaced(node, at, below);
    } catch (const std::bad_alloc&) {
      if (below.first != nullptr && below.first != node.node(at)) discard(below.first);
      throw;
    }
  }
  if (node.count == 1) return {};
  Children children(node);
  children.erase(at);
  return with(0, children, at);
}

template <class K>
void Top<K>::retire(Node* node) {
  reclaimer_.retire(
      node,
      [](void* object, void* arena) {
        const unsigned count = static_cast<Node*>(object)->count;
        static_cast<util::Arena*>(arena)->release(object, Node::bytes(count));
      },
      &arena_);
}

template <class K>
void Top<K>::retire(Leaf<K>* leaf) {
  reclaimer_.retire(
      leaf,
      [](void* object, void* arena) {
        const std::size_t bytes = static_cast<Leaf<K>*>(object)->bytes();
        static_cast<util::Arena*>(arena)->release(object, bytes);
      },
      &arena_);
}

template <class K>
void Top<K>::wish(Position<K>& position, Wish what, Leaf<K>* former) {
  // Out of the tree, and perhaps out of reach once the caller's guard ends.
  if (what == kRenew && !position.announce_news(kCome)) return retire(former);
  Wanted* wanted = nullptr;
  try {
    wanted = new (arena_.allocate(sizeof(Wanted)))
        Wanted{&position, position.low(), what, former, nullptr};
  } catch (const std::bad_alloc&) {
    return;  // the tree lags behind for ever; see grant_all()
  }
  wanted->next = wishes_.load(std::memory_order_relaxed);
  while (!wishes_.compare_exchange_weak(wanted->next, wanted)) {
  }
  grant_all();
}

template <class K>
void Top<K>::grant_all() {
  // Looks again after it has let go of the lock: whoever came meanwhile has left it to us.
  while (wishes_.load() != nullptr) {
    if (!writer_.try_lock()) return;
    const std::lock_guard lock(writer_, std::adopt_lock);
    Wanted* wanted = wishes_.exchange(nullptr);
    while (wanted != nullptr) {
      try {
        grant(*wanted);
      } catch (const std::bad_alloc&) {
        // The tree lags behind for ever; `next` of the leaf at the left still leads there.
      }
      arena_.release(std::exchange(wanted, wanted->next), sizeof(Wanted));
    }
  }
}

template <class K>
void Top<K>::grant(const Wanted& wanted) {
  Position<K>& position = *wanted.position;
  if (wanted.former != nullptr) {
    renew(position, wanted.low);  // its leaf is another one now, so no search finds this any more
    retire(wanted.former);
  }
  unsigned state = position.top_state() | wanted.what;
  Node* root = root_.load(std::memory_order_relaxed);
  replaced_.clear();
  replaced_.reserve(kMostLevels);
  const unsigned granted = state & ~kCome;
  if (wanted.what == kAdd && granted == 0) {
    // What has gone before it came need not come: another one may have its bound by now.
    state |= kAdded | kRemoved;
    if (position.leaf.load() != nullptr) {
      succeeded_ = nullptr;
      set_root(root, add(*root, {wanted.low, below_of(position)}));
      if (succeeded_ != nullptr) succeeded_->add_top_state(kRemoved);
      state &= ~kRemoved;
    }
  } else if (wanted.what == kRemove && granted == kAdded) {
    set_root(root, remove(*root, wanted.low));
    state |= kRemoved;
  }
  position.add_top_state(state);  // after the change: who sees that it has gone finds it nowhere
  if (wanted.what == kRenew) position.hear_news();
  for (Node* node : replaced_) retire(node);
  // Both wishes have come, and after them no news, so nobody will name it any more.
  if ((state & kCome) == kCome && !position.has_news())
    reclaimer_.retire(&position, release_, context_);
}

/// Has searches find a position's leaf, if they find the position.
template <class K>
void Top<K>::renew(const Position<K>& position, Key low) {
  Node* node = root_.load(std::memory_order_relaxed);
  const Goal goal = Goal::floor(low);
  while (node->level != 0) node = node->node(last(*node, goal));
  const unsigned at = last(*node, goal);
  if (spot(node->below(at)).at == &position)
    node->slot(at).store(below_of(position), std::memory_order_release);
}

template <class K>
void Top<K>::renew(std::span<Position<K>* const> positions) {
  {
    const std::unique_lock lock(writer_, std::try_to_lock);
    if (!lock) return;
    for (const Position<K>* position : positions) renew(*position, position->low());
  }
  grant_all();  // what others have left to us meanwhile
}

/// Makes what a change has left of the root the new one.
template <class K>
void Top<K>::set_root(Node* root, Change change) {
  if (change.first == root) return;
  if (change.second != nullptr) {
    const std::array<Child, 2> both{child_of(change.first), child_of(change.second)};
    change.first = make(root->level + 1U, both.data(), both.data() + both.size());
  }
  while (change.first->level != 0 && change.first->count == 1) {
    Node* single = change.first;
    change.first = single->node(0);
    discard(single);
  }
  root_.store(change.first, std::memory_order_release);
  replaced_.push_back(root);
}

}  // namespace perdix::index::nbtree
