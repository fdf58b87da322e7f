// The layers above the leaves: a B+-tree in DRAM that finds a position by its low bound, and the
// leaf that is there, so that a search need not wait for the position's memory, too.
//
// It may lag behind: it leads to the right position or to one at its left, or to one that was
// joined with its left neighbour; `next` of the leaves leads on. The leaf may have been replaced,
// and then is closing; it is not retired before the tree has heard of it.
//
// Readers take no lock and do not wait: a node's keys never change, and a child pointer changes
// to a copy of that child only. Writers copy nodes (the paper shifts entries in place, which needs
// hardware transactions, and readers that notice it), so each is as large as it must be. There is
// one writer at a time (flat combining, Hendler et al. 2010): a thread publishes its request and
// tries the lock; if that fails, the lock holder, or the next thread to get the lock, applies it.
// So no thread waits for a suspended writer. But while it is suspended the requests and the leaves
// that they retire add up, and a search walks by `next` over all that has been split since.
//
// Invariants:
//   1. A node that a published root has led to is released a grace period after none leads to it.
//   2. A change that fails for want of memory has changed nothing. Its request is kept and applied
//   with a later one.
//   3. The memory of a request is taken before the structure modification that it tells of
//   (prepare()): so submit() cannot fail.
//
// Readers and callers of submit() hold an epoch::Guard.
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
#include "pm/probe.h"
#include "util/arena.h"
#include "util/rank.h"
#include "util/spin_lock.h"
#include "util/stripe.h"

namespace perdix::detail::index::nbtree {

/// A change that a thread wants of the layers.
template <class K>
struct Request {
  Position<K>* position = nullptr;
  View<K> low{};  // the position's anchor may be another's when this is applied
  std::uint8_t what = 0;
  Leaf<K>* former = nullptr;
  Request* next = nullptr;
};

/// What the layers lead to: a position, and a leaf that was there; null if that is not known.
template <class K>
struct TopSlot {
  Position<K>* at;
  Leaf<K>* leaf;
};

template <class K>
class Top {
 public:
  using Key = View<K>;

  /// Disposes of a position, or of a leaf, that is out of reach of new readers.
  using Release = void (*)(void* object, void* context);

  Top(util::Arena& arena, epoch::Reclaimer& reclaimer, Release release, Release release_leaf,
      void* context)
      : arena_(arena),
        reclaimer_(reclaimer),
        release_(release),
        release_leaf_(release_leaf),
        context_(context) {
    built_.reserve(kMaxNodes);
    replaced_.reserve(kMaxNodes);
  }
  /// Releases the positions that have gone and could not be removed for want of memory.
  ~Top();
  Top(const Top&) = delete;
  Top& operator=(const Top&) = delete;

  struct Bound {
    Key low;
    Position<K>* position;
  };

  /// As many positions as build() fills a node with: what comes later splits few nodes soon.
  static constexpr std::size_t kBuilt = 45;

  /// Fills the tree, which was empty, with `positions` in ascending order, at least one:
  /// next(bounds) has the next ones, as many as the array has, which are up to kBuilt.
  template <class Next>
  void build(std::size_t positions, const Next& next);

  /// The position of the greatest low bound that is not above the key. It may have been joined, and
  /// its leaf replaced.
  TopSlot<K> floor(Key key) const {
    const Found found = find(Goal::floor(key));
    return slot_at(found.node->below(found.at));
  }

  /// The same, leaving out those that have been joined.
  Position<K>* linked_floor(Key key) const { return linked(find(Goal::floor(key))); }

  /// The same, but below the key; the key is not the least one.
  Position<K>* linked_below(Key key) const { return linked(find(Goal::below(key))); }

  enum What : std::uint8_t { kRenew = 0, kAdd = 1, kRemove = 2 };

  /// The memory of a request; throws std::bad_alloc. Goes to submit(), or back by take_back().
  Request<K>* prepare() { return new (arena_.allocate(sizeof(Request<K>))) Request<K>; }
  void take_back(Request<K>* prepared) { arena_.release(prepared, sizeof *prepared); }

  /// Adds a position, or removes it and then releases it. Each once, in any order; the first
  /// position of all is never removed. If a position is added with the low bound of another one,
  /// that one is gone from the list and takes no part in searches any more.
  ///
  /// To be removed, or renewed: `former` is no more the position's leaf. It is retired when no
  /// search finds it any more.
  void submit(Request<K>* prepared, Position<K>& position, What what, Leaf<K>* former = nullptr);

  /// Has searches find the leaves of these positions, which were cold. Does nothing if another
  /// thread is writing: a search then asks the position.
  void renew(std::span<Position<K>* const> positions);

 private:
  static constexpr unsigned kGroups = 16;
  static constexpr unsigned kChildrenPerGroup = 4;
  static constexpr unsigned kFanout = kGroups * kChildrenPerGroup;
  static constexpr std::size_t kMaxLevels = 32;
  static constexpr std::size_t kMaxNodes = 2 * kMaxLevels + 1;  // that a change makes or replaces

  // What a position has in its four bits: which requests have come, and which were applied.
  static constexpr unsigned kCome = kAdd | kRemove, kAppliedShift = 2;
  static constexpr unsigned kAdded = kAdd << kAppliedShift, kRemoved = kRemove << kAppliedShift;

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
    std::array<Key, kChildrenPerGroup - 1>
        keys;  // low bound of the first position below each but the first
    std::array<std::atomic<Below>, kChildrenPerGroup> children;
  };

  /// Two levels in one: a search compares all `firsts` together, and then the keys of one group.
  struct Node {
    std::uint8_t level;  // 0: children are positions
    std::uint8_t count;
    std::array<Key, kGroups> firsts;  // low bound of the first position below each group
    Group groups[];  // in place of keys that are not there is the greatest, if they are integers

    static std::size_t bytes(unsigned count) {
      return sizeof(Node) + groups_for(count) * sizeof(Group);
    }
    static unsigned groups_for(unsigned count) {
      return (count + kChildrenPerGroup - 1) / kChildrenPerGroup;
    }

    Key& key(unsigned i) {
      return i % kChildrenPerGroup == 0
                 ? firsts[i / kChildrenPerGroup]
                 : groups[i / kChildrenPerGroup].keys[i % kChildrenPerGroup - 1];
    }
    Key key(unsigned i) const { return const_cast<Node*>(this)->key(i); }
    std::atomic<Below>& slot(unsigned i) {
      return groups[i / kChildrenPerGroup].children[i % kChildrenPerGroup];
    }
    Below below(unsigned i) const {
      return groups[i / kChildrenPerGroup].children[i % kChildrenPerGroup].load(
          std::memory_order_acquire);
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

  /// As many children as a node may have.
  static unsigned fanout() {
    return static_cast<unsigned>(pm::limit("nbtree: children of a node", kFanout));
  }

  static Node* node_of(Below below) { return reinterpret_cast<Node*>(below); }
  static Child child_of(Node* node) {
    return {node->key(0), reinterpret_cast<std::uintptr_t>(node)};
  }
  TopSlot<K> slot_at(Below below) const {
    return {
        static_cast<Position<K>*>(arena_.piece(static_cast<util::Arena::Ref>(below))),
        static_cast<Leaf<K>*>(arena_.piece(static_cast<util::Arena::Ref>(below >> kLeafShift)))};
  }
  Below below_of(const Position<K>& position) const;

  Found find(Goal goal) const;
  Position<K>* linked(Found found) const;
  static unsigned last(const Node& node, Goal goal);

  Node* make(unsigned level, const Child* begin, const Child* end);
  Node* fresh(unsigned level, const Child* begin, const Child* end);
  void discard(Node* node) { arena_.release(node, Node::bytes(node->count)); }
  Change with(unsigned level, const Children& children, unsigned added);
  static bool same_key(Key a, Key b);
  Change replaced(Node& node, unsigned at, Change below);
  Change add(Node& node, Child position);
  Change remove(Node& node, Key low);
  void retire(Node* node);
  void retire(Leaf<K>* leaf);
  void apply_all();
  void apply_deferred();
  bool try_apply(Request<K>& request);
  void apply(Request<K>& request);
  unsigned change_for(const Request<K>& request, unsigned state);
  void renew(const Position<K>& position, Key low);
  void set_root(Node* root, Change change);

  util::Arena& arena_;
  epoch::Reclaimer& reclaimer_;
  Release release_;
  Release release_leaf_;
  void* context_;
  std::atomic<Node*> root_{nullptr};
  std::atomic<Request<K>*> requests_{nullptr};  // a stack, taken as a whole
  util::SpinLock writer_;

  // The writer's.
  Request<K>* deferred_ = nullptr;    // a stack of requests that there was no memory for
  std::vector<Node*> built_;          // in the change that the writer is at; has room
  std::vector<Node*> replaced_;       // by others, in that change; has room
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
    Position<K>* at = slot_at(found.node->below(found.at)).at;
    if (at->leaf.load() != nullptr) return at;
    pm::on_step("nbtree: pass a position that is joined");
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
    return std::min(group * kChildrenPerGroup + in_group, node.count - 1U);
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
  const std::size_t most = std::min<std::size_t>(kBuilt, fanout());
  std::vector<Child> lower;
  lower.reserve(positions / most + 1);
  std::array<Bound, kBuilt> some;
  std::array<Child, kBuilt> children;
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
  for (unsigned i = 0; i < Node::groups_for(count) * kChildrenPerGroup; ++i) {
    const Child& child = i < count ? begin[i] : none;
    node->key(i) = child.low;
    node->slot(i).store(child.below, std::memory_order_relaxed);
  }
  return node;
}

/// The same, as part of a change, which may fail later on.
template <class K>
auto Top<K>::fresh(unsigned level, const Child* begin, const Child* end) -> Node* {
  return built_.emplace_back(make(level, begin, end));
}

/// A node with these children, of which one was just added; two nodes if one can't hold them.
template <class K>
auto Top<K>::with(unsigned level, const Children& children, unsigned added) -> Change {
  const Child* begin = children.items.data();
  const Child* end = begin + children.count;
  const unsigned most = fanout();
  if (children.count <= most) return {fresh(level, begin, end)};
  // Behind the last one there may come more: then nodes become full.
  const Child* half = begin + (added == most ? most : children.count / 2);
  Node* first = fresh(level, begin, half);
  return {first, fresh(level, half, end)};
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

/// The node after its child `at` has become what `below` says. Where that is a store in place, it
/// publishes what was built, and nothing of the change is left that could fail.
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
    pm::on_step("nbtree: publish a node");
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
      succeeded_ = slot_at(node.below(at)).at;
      children.items[at] = position;
    } else {
      children.insert(at + 1, position);
    }
    return with(0, children, at + 1);
  }
  return replaced(node, at, add(*node.node(at), position));
}

template <class K>
auto Top<K>::remove(Node& node, Key removed) -> Change {
  const unsigned at = last(node, Goal::floor(removed));
  if (node.level != 0) return replaced(node, at, remove(*node.node(at), removed));
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
  reclaimer_.retire(leaf, release_leaf_, context_);
}

template <class K>
Top<K>::~Top() {
  // What has gone is known by whether the other one of its requests was applied.
  while (Request<K>* request = deferred_) {
    deferred_ = request->next;
    const bool removed = (request->position->top_state() & kRemove) != 0;
    if (request->what == kRemove || removed) release_(request->position, context_);
    take_back(request);
  }
}

template <class K>
void Top<K>::submit(Request<K>* prepared, Position<K>& position, What what, Leaf<K>* former) {
  if (what == kRenew && !position.add_pending_request(kCome)) {
    // Out of the tree, and perhaps out of reach once the caller's guard ends.
    pm::on_step("nbtree: a position goes before its leaf is renewed");
    take_back(prepared);
    return retire(former);
  }
  *prepared = {&position, position.low(), what, former, requests_.load(std::memory_order_relaxed)};
  pm::on_step("nbtree: leave a request");
  while (!requests_.compare_exchange_weak(prepared->next, prepared)) {
  }
  apply_all();
}

template <class K>
void Top<K>::apply_all() {
  // Looks again after it has let go of the lock: a thread that came in between has left its
  // request to this one.
  while (requests_.load() != nullptr) {
    if (!writer_.try_lock()) {
      pm::on_step("nbtree: leave a request to another");
      return;
    }
    const std::lock_guard lock(writer_, std::adopt_lock);
    apply_deferred();
    Request<K>* request = requests_.exchange(nullptr);
    while (request != nullptr) {
      Request<K>* next = request->next;
      if (!try_apply(*request)) {
        // Until then `next` of the leaf at the left leads there.
        request->next = deferred_;
        deferred_ = request;
      }
      request = next;
    }
  }
}

/// Applies requests that there was no memory for, until there is none again.
template <class K>
void Top<K>::apply_deferred() {
  while (Request<K>* request = deferred_) {
    Request<K>* next = request->next;
    if (!try_apply(*request)) return;
    deferred_ = next;
  }
}

/// Applies a request and takes its memory back. False, and nothing has changed, if there is no
/// memory for what it needs.
template <class K>
bool Top<K>::try_apply(Request<K>& request) {
  built_.clear();
  replaced_.clear();
  try {
    apply(request);
  } catch (const std::bad_alloc&) {
    for (Node* node : built_) discard(node);
    return false;
  }
  take_back(&request);
  return true;
}

template <class K>
void Top<K>::apply(Request<K>& request) {
  Position<K>& position = *request.position;
  if (request.former != nullptr) {
    renew(position, request.low);  // its leaf is another one now, so no search finds this any more
    retire(std::exchange(request.former, nullptr));
  }
  const unsigned state = change_for(request, position.top_state() | request.what);
  position.add_top_state(state);  // after the change: who sees that it has gone finds it nowhere
  if (request.what == kRenew) position.drop_pending_request();
  for (Node* node : replaced_) retire(node);
  // Both requests have come, and none is pending, so none will name it any more.
  if ((state & kCome) == kCome && !position.has_pending_requests())
    reclaimer_.retire(&position, release_, context_);
}

/// Adds or removes a position in that state. Returns the state that it has then.
template <class K>
unsigned Top<K>::change_for(const Request<K>& request, unsigned state) {
  const Position<K>& position = *request.position;
  Node* root = root_.load(std::memory_order_relaxed);
  const unsigned applied = state & ~kCome;
  if (request.what == kAdd && applied == 0) {
    // What has gone before it came need not come: another one may have its bound by now.
    if (position.leaf.load() == nullptr) {
      pm::on_step("nbtree: a position goes before it comes");
      return state | kAdded | kRemoved;
    }
    succeeded_ = nullptr;
    set_root(root, add(*root, {request.low, below_of(position)}));
    if (succeeded_ != nullptr) {
      pm::on_step("nbtree: a position succeeds one that is gone");
      succeeded_->add_top_state(kRemoved);
    }
    return state | kAdded;
  }
  if (request.what == kRemove && applied == kAdded) {
    set_root(root, remove(*root, request.low));
    return state | kRemoved;
  }
  return state;
}

/// Has searches find a position's leaf, if they find the position.
template <class K>
void Top<K>::renew(const Position<K>& position, Key low) {
  Node* node = root_.load(std::memory_order_relaxed);
  const Goal goal = Goal::floor(low);
  while (node->level != 0) node = node->node(last(*node, goal));
  const unsigned at = last(*node, goal);
  if (slot_at(node->below(at)).at != &position) return;
  pm::on_step("nbtree: renew a leaf");
  node->slot(at).store(below_of(position), std::memory_order_release);
}

template <class K>
void Top<K>::renew(std::span<Position<K>* const> positions) {
  {
    const std::unique_lock lock(writer_, std::try_to_lock);
    if (!lock) return;
    for (const Position<K>* position : positions) renew(*position, position->low());
  }
  apply_all();  // what other threads have left to this one
}

/// Makes what a change has left of the root the new one.
template <class K>
void Top<K>::set_root(Node* root, Change change) {
  if (change.first == root) return;
  if (change.second != nullptr) {
    const std::array<Child, 2> both{child_of(change.first), child_of(change.second)};
    pm::on_step("nbtree: the root splits");
    change.first = fresh(root->level + 1U, both.data(), both.data() + both.size());
  }
  Node* top = change.first;
  // The first such node is new, but those below it need not be: readers may come to them from the
  // old root. So all of them are retired, like that.
  for (; top->level != 0 && top->count == 1; top = top->node(0)) {
    pm::on_step("nbtree: the root has one child");
    replaced_.push_back(top);
  }
  pm::on_step("nbtree: publish a root");
  root_.store(top, std::memory_order_release);
  replaced_.push_back(root);
}

}  // namespace perdix::detail::index::nbtree
