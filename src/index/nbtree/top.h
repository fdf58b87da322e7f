// The layers above the leaves: a B+-tree in DRAM that finds a position by its low bound, and with
// it the leaf that is there, so that a search need not wait for the position's memory, too.
//
//   build                            fills the tree on opening
//   floor, linked_floor, linked_below  search
//   prepare, then submit or take_back  a change
//   renew                            leaves that were cold
//
// The tree may lag behind. It leads to the right position, to one at its left, or to one that was
// joined with its left neighbour; `next` of the leaves leads on. The leaf that it leads to may have
// been replaced, and then is closing. A replaced leaf is not retired before the tree has been told.
//
// Readers take no lock and do not wait: a node's keys never change, and a child pointer changes
// only to a copy of that child. Writers copy nodes, so each node is as large as it must be. (The
// paper shifts entries in place, which needs hardware transactions, and readers that notice it.)
// There is one writer at a time (flat combining, Hendler et al. 2010): a thread publishes its
// request and tries the lock; if that fails, the lock holder, or the next thread to get the lock,
// applies it. So no thread waits for a suspended writer. But while a writer is suspended, requests
// and the leaves that they retire accumulate, and a search walks by `next` over all that has been
// split since.
//
// Invariants:
//   1. A node is released a grace period after no published root leads to it any more.
//   2. A change that fails for want of memory has changed nothing. Its request is kept and applied
//   with a later one.
//   3. The memory of a request is taken before the structure modification that it reports
//   (prepare()). So submit() cannot fail.
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

/// A change of the layers that a thread requests: see Top::submit().
template <class K>
struct Request {
  Position<K>* position = nullptr;
  View<K> low{};  // of the position, whose anchor may be another's when this is applied
  std::uint8_t what = 0;
  Leaf<K>* former = nullptr;
  Request* next = nullptr;  // in the stack of requests
};

/// What the layers lead to: a position, and a leaf that was there. The leaf is null if it was cold.
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
  /// Releases the positions that could not be removed for want of memory.
  ~Top();
  Top(const Top&) = delete;
  Top& operator=(const Top&) = delete;

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

  /// The same, but of positions that have not been joined.
  Position<K>* linked_floor(Key key) const { return first_linked(find(Goal::floor(key))); }

  /// The same, but of low bounds below the key, which is not the least one.
  Position<K>* linked_below(Key key) const { return first_linked(find(Goal::below(key))); }

  enum What : std::uint8_t { kRenew = 0, kAdd = 1, kRemove = 2 };

  /// Takes the memory of a request. Throws std::bad_alloc. The caller passes it to submit(), or
  /// gives it back by take_back().
  Request<K>* prepare() { return new (arena_.allocate(sizeof(Request<K>))) Request<K>; }
  void take_back(Request<K>* prepared) { arena_.release(prepared, sizeof *prepared); }

  /// Requests a change, and applies it unless another thread does:
  ///   kAdd     the position is found from now on. If another position has the same low bound, that
  ///            one is no longer in the list, and is replaced.
  ///   kRemove  the position is not found any more, and is released. `former` was its leaf.
  ///   kRenew   the position's leaf is another one now. `former` was its leaf.
  /// `former` is retired when no search finds it any more. A position is added once and removed
  /// once, and the requests may be applied in any order. The first position of all is never
  /// removed.
  void submit(Request<K>* prepared, Position<K>& position, What what, Leaf<K>* former = nullptr);

  /// Stores the leaves of these positions, which were cold, so that searches find them. Does
  /// nothing if another thread is writing: searches then read the position.
  void renew(std::span<Position<K>* const> positions);

 private:
  static constexpr unsigned kGroups = 16;
  static constexpr unsigned kChildrenPerGroup = 4;
  static constexpr unsigned kFanout = kGroups * kChildrenPerGroup;
  static constexpr std::size_t kMaxLevels = 32;
  static constexpr std::size_t kMaxNodes = 2 * kMaxLevels + 1;  // that a change makes or replaces

  // What a position has in its four bits (Position::top_state()): which of kAdd and kRemove have
  // been requested, and which have been applied.
  static constexpr unsigned kCome = kAdd | kRemove, kAppliedShift = 2;
  static constexpr unsigned kAdded = kAdd << kAppliedShift, kRemoved = kRemove << kAppliedShift;

  /// What a child is: a node, or at level 0 a position and its leaf, in 32 bits each.
  using Below = std::uint64_t;
  static constexpr unsigned kLeafShift = 32;

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

  /// Two levels in one: a search compares all `firsts` together, and then the keys of one group.
  struct Node {
    std::uint8_t level;  // 0: children are positions
    std::uint8_t count;
    std::array<Key, kGroups> firsts;  // low bound of the first position below each group
    Group groups[];  // of integers, the greatest one stands for keys that are not there

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

    /// Prefetches as many lines as a node can have. How many it has would only be known from the
    /// first of them.
    void prefetch() const {
      for (std::size_t i = 0; i < bytes(kFanout); i += util::kCacheLine)
        __builtin_prefetch(reinterpret_cast<const char*>(this) + i);
    }
  };

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

  // The following belong to the writer, the last three to the change that it is making. The vectors
  // have room for all nodes of a change.
  Request<K>* deferred_ = nullptr;    // a stack of requests that lacked memory
  std::vector<Node*> built_;          // nodes that the change has made
  std::vector<Node*> replaced_;       // nodes that it has replaced
  Position<K>* displaced_ = nullptr;  // the position that it has replaced by one of the same bound
};

template <class K>
[[gnu::always_inline]] inline auto Top<K>::find(Goal goal) const -> Found {
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
Position<K>* Top<K>::first_linked(Found found) const {
  for (;;) {
    Position<K>* at = slot_at(found.node->below(found.at)).at;
    if (at->leaf.load() != nullptr) return at;
    pm::on_step("nbtree: pass a position that is joined");
    found = find(Goal::below(found.node->key(found.at)));
  }
}

/// The word by which a search finds a position and its present leaf.
template <class K>
auto Top<K>::below_of(const Position<K>& position) const -> Below {
  const Leaf<K>* leaf = position.leaf.load();
  return arena_.ref(&position) | Below{is_cold(leaf) ? 0 : arena_.ref(leaf)} << kLeafShift;
}

/// The number of the last key of a node that reaches the goal; 0 if none does.
template <class K>
[[gnu::always_inline]] inline unsigned Top<K>::last_reached(const Node& node, Goal goal) {
  if constexpr (std::is_integral_v<K>) {
    // Without a branch on a key, which would be mispredicted half of the time. Then nothing of the
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

/// make() as a part of a change, which discards the node if it fails later.
template <class K>
auto Top<K>::make_new(unsigned level, const Child* begin, const Child* end) -> Node* {
  return built_.emplace_back(make(level, begin, end));
}

/// A node with these children, of which one was just added; two nodes if one can't hold them.
template <class K>
auto Top<K>::node_with(unsigned level, const Children& children, unsigned added) -> Change {
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
bool Top<K>::same_key(Key a, Key b) {
  if constexpr (std::is_same_v<K, std::string>) {
    return a.data() == b.data() && a.size() == b.size();
  } else {
    return a == b;
  }
}

/// What takes the place of a node when its child `at` has become what `below` says. If one store in
/// the node is enough, makes it: this publishes what was built, and nothing can fail after it.
template <class K>
auto Top<K>::with_child(Node& node, unsigned at, Change below) -> Change {
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
    change = node_with(node.level, children, at + 1);
  } else {
    pm::on_step("nbtree: publish a node");
    node.slot(at).store(child_of(below.first).below, std::memory_order_release);
  }
  replaced_.push_back(child);
  return change;
}

template <class K>
auto Top<K>::add(Node& node, Child position) -> Change {
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
auto Top<K>::remove(Node& node, Key removed) -> Change {
  const unsigned at = last_reached(node, Goal::floor(removed));
  if (node.level != 0) return with_child(node, at, remove(*node.node(at), removed));
  if (node.count == 1) return {};
  Children children(node);
  children.erase(at);
  return node_with(0, children, at);
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
  // Releases the positions that are removed. At most one request of a position is deferred: kRemove
  // needs memory only if kAdd was applied.
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
  // Looks again after unlocking: a thread that found the lock held has left its request to this
  // one.
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
        // Until it is applied, `next` of the leaf at the left leads to the position.
        request->next = deferred_;
        deferred_ = request;
      }
      request = next;
    }
  }
}

/// Applies the requests that lacked memory, until one does so again.
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
    renew(position, request.low);  // so no search finds the former leaf any more
    retire(std::exchange(request.former, nullptr));
  }
  const unsigned state = change_for(request, position.top_state() | request.what);
  position.add_top_state(state);  // after the change: a position that is removed is found nowhere
  if (request.what == kRenew) position.drop_pending_request();
  for (Node* node : replaced_) retire(node);
  // Both kAdd and kRemove were requested and no request is pending, so none will name it any more.
  if ((state & kCome) == kCome && !position.has_pending_requests())
    reclaimer_.retire(&position, release_, context_);
}

/// Adds or removes the request's position, as its state allows. Returns its state after that.
template <class K>
unsigned Top<K>::change_for(const Request<K>& request, unsigned state) {
  const Position<K>& position = *request.position;
  Node* root = root_.load(std::memory_order_relaxed);
  const unsigned applied = state & ~kCome;
  if (request.what == kAdd && applied == 0) {
    // A position that was joined before it was added is not added: another position may have its
    // bound by now.
    if (position.leaf.load() == nullptr) {
      pm::on_step("nbtree: a position goes before it comes");
      return state | kAdded | kRemoved;
    }
    displaced_ = nullptr;
    set_root(root, add(*root, {request.low, below_of(position)}));
    if (displaced_ != nullptr) {
      pm::on_step("nbtree: a position succeeds one that is gone");
      displaced_->add_top_state(kRemoved);
    }
    return state | kAdded;
  }
  if (request.what == kRemove && applied == kAdded) {
    set_root(root, remove(*root, request.low));
    return state | kRemoved;
  }
  return state;
}

/// Stores a position's present leaf where searches find the position, if they do.
template <class K>
void Top<K>::renew(const Position<K>& position, Key low) {
  Node* node = root_.load(std::memory_order_relaxed);
  const Goal goal = Goal::floor(low);
  while (node->level != 0) node = node->node(last_reached(*node, goal));
  const unsigned at = last_reached(*node, goal);
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

/// Publishes the root after a change.
template <class K>
void Top<K>::set_root(Node* root, Change change) {
  if (change.first == root) return;
  if (change.second != nullptr) {
    const std::array<Child, 2> both{child_of(change.first), child_of(change.second)};
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
