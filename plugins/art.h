// An adaptive radix tree whose readers take no lock and wait for none (Leis et al. 2013; ROWEX in
// Leis et al. 2016). art/node.h has the nodes and their invariants.
//
// A node says in which symbol the keys below its children differ, and stores no prefix. A lookup
// skips the symbols between nodes, and compares the key with the leaf that it reaches. So inserting
// a node on an edge, or removing a node with one child left, changes one slot and copies nothing,
// and an erase needs no memory.
//
// Writers lock the nodes whose slots they change, from the top down. A node without room is
// replaced by a copy, under the lock of the node above.
//
// `Memory` is where it lies: Volatile or Durable (perdix/tips_plugin.h). Volatile frees memory
// immediately, so its readers must exclude writers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <perdix/tips_locks.h>
#include <perdix/tips_plugin.h>

#include "plugins/art/node.h"

namespace perdix::tips::plugins {

template <class Memory, class Keys>
class Art {
  using Link = art::Link;
  using Slot = art::Slot;
  using Leaf = art::Leaf;
  using Node = art::Node;
  using Child = art::Child;

 public:
  bool put(Word key, Word value, Word& old) {
    for (Own<Leaf> leaf;;) {
      const Place place = descend(key, kSameKey);
      const Leaf* const near = leaf_near(place);
      const std::size_t at = near == nullptr ? 0 : Keys::mismatch(near->key, key);
      if (at == kSameKey) {
        if (replace_value(place, value, old)) return true;
        continue;
      }
      if (leaf == nullptr) leaf = make<Leaf>(key, value);
      if (near == nullptr ? add_first(leaf) : add(leaf, at)) break;
    }
    return false;
  }

  bool erase(Word key, Word& old_key, Word& old_value) {
    for (;;) {
      const Place place = descend(key, kSameKey);
      if (place.link == 0 || !Keys::equal(art::leaf_at(place.link).key, key)) return false;
      if (!remove(place)) continue;
      Leaf& leaf = art::leaf_at(place.link);
      old_key = leaf.key, old_value = leaf.value.load(std::memory_order_relaxed);
      Own<Leaf>(&leaf).reset();
      return true;
    }
  }

  bool find(Word key, Word& value) const { return find(Trusting(), key, value); }

  template <class Trust>
  bool find(const Trust& trust, Word key, Word& value) const {
    Link link = root_.load(std::memory_order_acquire);
    for (std::uint32_t least = 0; art::is_node(link);) {
      const Node& node = art::node_at(link);
      if (!is_readable(trust, node) || node.depth < least) return trust.damaged();
      link = art::child_of(node, Keys::symbol(key, node.depth));
      least = node.depth + 1;
    }
    if (link == 0) return false;
    const Leaf& leaf = art::leaf_at(link);
    if (!trust.readable(&leaf, sizeof leaf) || !trust.key(leaf.key)) return trust.damaged();
    if (!Keys::equal(leaf.key, key)) return false;
    value = leaf.value.load(std::memory_order_acquire);
    return true;
  }

  std::uint64_t size() const { return size_.load(); }

  void scan(const Word* from, void* context, ShowPair show) const {
    std::vector<Step> path;
    for (Link link = begin(from, path); link != 0; link = next(path)) {
      if (art::is_node(link)) {
        path.push_back({&art::node_at(link), 0});
        continue;
      }
      const Leaf& leaf = art::leaf_at(link);
      if (!show(context, leaf.key, leaf.value.load(std::memory_order_acquire))) return;
    }
  }

  bool find_last(Word bound, bool strictly, Word& key, Word& value) const {
    std::vector<Step> path;
    const auto [link, side] = locate(bound, path);
    const bool within = side == Side::less || (side == Side::equal && !strictly);
    Link last = within ? link : 0;
    for (; last == 0 && !path.empty(); path.pop_back())
      last = art::child_before(*path.back().node, path.back().symbol).link;
    if (last == 0) return false;
    const Leaf& leaf = last_leaf(last);
    key = leaf.key, value = leaf.value.load(std::memory_order_acquire);
    return true;
  }

  bool inspect(Inspector& inspector) const {
    if (top_.state != art::kFree) return false;
    Inspection inspection{inspector, {}, 0, nullptr, 0};
    for (Link link = root_; link != 0;) {
      const bool sound = art::is_leaf(link) ? inspect_leaf(inspection, art::leaf_at(link))
                                            : inspect_node(inspection, art::node_at(link));
      if (!sound || !inspect_next(inspection, link)) return false;
    }
    return inspection.pairs == size_;
  }

  /// The locks of nodes have undo records from before they were taken, so a crash leaves none.
  void renew_locks() { top_.state = art::kFree; }

  /// A leaf, and a node for a new edge or a larger copy of one.
  static constexpr PutTakes put_takes() {
    return {{{sizeof(Leaf), 1},
             {sizeof(art::Node4), 1},
             {sizeof(art::Node16), 1},
             {sizeof(art::Node48), 1},
             {sizeof(art::Node256), 1}}};
  }

 private:
  static constexpr std::size_t kSameKey = Keys::kNoMismatch;

  struct Release {
    void operator()(void* block) const { Memory::free(block); }
  };
  /// Of a block that no other thread can find.
  template <class T>
  using Own = std::unique_ptr<T, Release>;

  template <class T, class... Arguments>
  static Own<T> make(Arguments... arguments) {
    return Own<T>(new (Memory::allocate(sizeof(T))) T{arguments...});
  }

  /// Each change of what others can see.
  template <class T>
  static T& change(T& object) {
    Memory::add(&object, sizeof object);
    return object;
  }

  static void set(Slot& slot, Link link) { change(slot).store(link, std::memory_order_release); }

  /// The lock of a node, unless that is out of the tree.
  class Locked {
   public:
    explicit Locked(Node& node) : node_(lock(change(node)) ? &node : nullptr) {}
    ~Locked() {
      if (node_ != nullptr) node_->state.store(art::kFree, std::memory_order_release);
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

    explicit operator bool() const { return node_ != nullptr; }
    /// The node has left the tree.
    void retire() {
      node_->state.store(art::kObsolete, std::memory_order_release);
      Memory::free(std::exchange(node_, nullptr));
    }

   private:
    static bool lock(Node& node) {
      for (Backoff backoff;; backoff.pause()) {
        std::uint8_t state = art::kFree;
        if (node.state.compare_exchange_weak(state, art::kLocked)) return true;
        if (state == art::kObsolete) return false;
      }
    }

    Node* node_;  // null: it is out of the tree
  };

  /// A slot and the node that it is in; null: the symbol has none there.
  struct Edge {
    Node* node;
    Slot* slot;
  };

  /// What a way down leads to: `link`, by `edge`; `above` leads to the node of that.
  struct Place {
    Edge above, edge;
    Link link;
  };

  /// The way of a key, to a node that decides on that symbol or a later one, or to where it ends.
  Place descend(Word key, std::size_t depth) {
    Place place{{}, {&top_, &root_}, root_.load(std::memory_order_acquire)};
    while (art::is_node(place.link) && art::node_at(place.link).depth < depth) {
      Node& node = art::node_at(place.link);
      Slot* const slot = art::slot_of(node, Keys::symbol(key, node.depth));
      place.above = place.edge;
      place.edge = {&node, slot};
      place.link = slot == nullptr ? 0 : slot->load(std::memory_order_acquire);
    }
    return place;
  }

  /// Any child of a node: it has some at each moment, but they may come and go.
  static Link any_child(const Node& node) {
    for (;;)
      if (const Child child = art::next_child(node, 0); child.link != 0) return child.link;
  }
  static const Leaf& any_leaf(Link link) {
    while (art::is_node(link)) link = any_child(art::node_at(link));
    return art::leaf_at(link);
  }
  static const Leaf& last_leaf(Link link) {
    while (art::is_node(link)) {
      const Child last = art::child_before(art::node_at(link), art::kSymbols);
      if (last.link != 0) link = last.link;
    }
    return art::leaf_at(link);
  }

  /// A leaf that has as many first symbols of a key as any, which was descended for to the end;
  /// null: the tree is empty.
  const Leaf* leaf_near(const Place& place) const {
    if (place.link != 0) return &art::leaf_at(place.link);
    return place.edge.node == &top_ ? nullptr : &any_leaf(art::link_to(*place.edge.node));
  }

  // What follows returns false if another writer was in the way.

  static bool replace_value(const Place& place, Word value, Word& old) {
    const Locked lock(*place.edge.node);
    if (!lock || *place.edge.slot != place.link) return false;
    std::atomic<Word>& to = change(art::leaf_at(place.link).value);
    old = to.load(std::memory_order_relaxed);
    to.store(value, std::memory_order_release);
    return true;
  }

  bool add_first(Own<Leaf>& leaf) {
    const Locked lock(top_);
    if (root_ != 0) return false;
    set(root_, art::link_to(*leaf.release()));
    change(size_).fetch_add(1);
    return true;
  }

  /// A leaf whose key differs from those on its way in symbol `at` at first.
  bool add(Own<Leaf>& leaf, std::size_t at) {
    const Place place = descend(leaf->key, at);
    if (place.link == 0) return false;
    const bool to_node = art::is_node(place.link) && art::node_at(place.link).depth == at;
    if (!(to_node ? add_child(place.edge, art::node_at(place.link), *leaf)
                  : split_edge(place, *leaf, at)))
      return false;
    leaf.release();
    change(size_).fetch_add(1);
    return true;
  }

  /// A new node on an edge, for what is there and a leaf.
  static bool split_edge(const Place& place, const Leaf& leaf, std::size_t at) {
    const Locked lock(*place.edge.node);
    if (!lock || *place.edge.slot != place.link) return false;
    const Leaf& other = any_leaf(place.link);
    if (Keys::mismatch(other.key, leaf.key) != at) return false;
    Own<art::Node4> node = make<art::Node4>(static_cast<std::uint32_t>(at));
    add_to_new(*node, Keys::symbol(other.key, at), place.link);
    add_to_new(*node, Keys::symbol(leaf.key, at), art::link_to(leaf));
    set(*place.edge.slot, art::link_to(*node.release()));
    return true;
  }

  /// A leaf below a node that `edge` leads to.
  static bool add_child(const Edge& edge, Node& node, const Leaf& leaf) {
    const unsigned symbol = Keys::symbol(leaf.key, node.depth);
    std::optional<Locked> outer;
    if (!has_room(node, symbol)) {
      outer.emplace(*edge.node);
      if (!*outer || *edge.slot != art::link_to(node)) return false;
    }
    Locked lock(node);
    if (!lock || art::child_of(node, symbol) != 0) return false;
    if (Keys::mismatch(any_leaf(art::link_to(node)).key, leaf.key) != node.depth) return false;
    if (has_room(node, symbol)) {
      put_child(node, symbol, art::link_to(leaf));
      return true;
    }
    if (!outer) return false;
    Own<Node> larger = copy(node, node.live + 1);
    add_to_new(*larger, symbol, art::link_to(leaf));
    replace(edge, lock, *larger.release());
    return true;
  }

  static bool has_room(Node& node, unsigned symbol) {
    return node.used < art::capacity_of(node) || art::slot_of(node, symbol) != nullptr;
  }

  static void put_child(Node& node, unsigned symbol, Link link) {
    change(node.live).fetch_add(1);
    if (Slot* const slot = art::slot_of(node, symbol)) return set(*slot, link);
    const auto log = [](auto& object) -> auto& { return change(object); };
    art::as_kind(node, [&](auto& typed) { typed.add(log, symbol, link); });
  }

  static void add_to_new(Node& node, unsigned symbol, Link link) {
    ++node.live;
    const auto as_it_is = [](auto& object) -> auto& { return object; };
    art::as_kind(node, [&](auto& typed) { typed.add(as_it_is, symbol, link); });
  }

  static Own<Node> new_node(art::Kind kind, std::uint32_t depth) {
    switch (kind) {
      case art::Kind::node4: return Own<Node>(make<art::Node4>(depth).release());
      case art::Kind::node16: return Own<Node>(make<art::Node16>(depth).release());
      case art::Kind::node48: return Own<Node>(make<art::Node48>(depth).release());
      default: return Own<Node>(make<art::Node256>(depth).release());
    }
  }

  /// With its lock: the children of a node, in a node with room for this many.
  static Own<Node> copy(const Node& node, std::uint64_t children) {
    Own<Node> to = new_node(art::kind_for(children), node.depth);
    for (Child child = art::next_child(node, 0); child.link != 0;
         child = art::next_child(node, child.symbol + 1))
      add_to_new(*to, child.symbol, child.link);
    return to;
  }

  /// With the lock of the edge's node.
  static void replace(const Edge& edge, Locked& old, const Node& node) {
    set(*edge.slot, art::link_to(node));
    old.retire();
  }

  /// The leaf that a way has led to.
  bool remove(const Place& place) {
    Node& node = *place.edge.node;
    const bool leaves_one = &node != &top_ && node.live == 2;
    if (!(leaves_one ? remove_with_node(place) : remove_alone(place))) return false;
    change(size_).fetch_sub(1);
    if (!leaves_one && &node != &top_ && art::is_sparse(node)) shrink(place.above, node);
    return true;
  }

  bool remove_alone(const Place& place) {
    Node& node = *place.edge.node;
    const Locked lock(node);
    if (!lock || *place.edge.slot != place.link) return false;
    if (&node != &top_) {
      if (node.live == 2) return false;
      change(node.live).fetch_sub(1);
    }
    set(*place.edge.slot, 0);
    return true;
  }

  /// The node has two children: the other one takes its place.
  static bool remove_with_node(const Place& place) {
    Node& node = *place.edge.node;
    const Locked outer(*place.above.node);
    if (!outer || *place.above.slot != art::link_to(node)) return false;
    Locked lock(node);
    if (node.live != 2 || *place.edge.slot != place.link) return false;
    Child other = art::next_child(node, 0);
    if (other.link == place.link) other = art::next_child(node, other.symbol + 1);
    set(*place.above.slot, other.link);
    lock.retire();
    return true;
  }

  /// If it can be had, a smaller node takes the place of one with few children.
  static void shrink(const Edge& edge, Node& node) {
    const Locked outer(*edge.node);
    if (!outer || *edge.slot != art::link_to(node)) return;
    Locked lock(node);
    if (!art::is_sparse(node)) return;
    try {
      replace(edge, lock, *copy(node, node.live).release());
    } catch (const std::exception&) {  // there is no memory: it stays as large as it is
    }
  }

  /// A node of a path, and the symbol at which the path goes on.
  struct Step {
    const Node* node;
    unsigned symbol;
  };

  /// How keys compare with one that is looked for.
  enum class Side { less, equal, greater, nowhere };

  /// What is at the place of a key: all keys there are on one side. Nowhere: the key would be a
  /// child of the path's last node.
  struct Located {
    Link link;
    Side side;
  };

  /// The path has the nodes above, each with the symbol that the key has there.
  Located locate(Word key, std::vector<Step>& path) const {
    Link link = root_.load(std::memory_order_acquire);
    bool missing = link == 0;
    while (art::is_node(link)) {
      const Node& node = art::node_at(link);
      path.push_back({&node, Keys::symbol(key, node.depth)});
      link = art::child_of(node, path.back().symbol);
      missing = link == 0;
      if (missing) link = art::link_to(any_leaf(any_child(node)));
    }
    if (link == 0) return {0, Side::nowhere};
    const Leaf& leaf = art::leaf_at(link);
    const std::size_t at = Keys::mismatch(leaf.key, key);
    if (at == kSameKey) return {link, Side::equal};
    for (; !path.empty() && path.back().node->depth > at; path.pop_back())
      link = art::link_to(*path.back().node), missing = false;
    if (missing) return {0, Side::nowhere};
    return {link, Keys::less(leaf.key, key) ? Side::less : Side::greater};
  }

  Link begin(const Word* from, std::vector<Step>& path) const {
    if (from == nullptr) return root_.load(std::memory_order_acquire);
    const auto [link, side] = locate(*from, path);
    for (Step& step : path) ++step.symbol;
    return side == Side::equal || side == Side::greater ? link : next(path);
  }

  /// What comes next on a path; 0: nothing.
  static Link next(std::vector<Step>& path) {
    for (; !path.empty(); path.pop_back()) {
      const Child child = art::next_child(*path.back().node, path.back().symbol);
      path.back().symbol = child.symbol + 1;
      if (child.link != 0) return child.link;
    }
    return 0;
  }

  template <class Trust>
  static bool is_readable(const Trust& trust, const Node& node) {
    if constexpr (!Trust::kDoubts) return true;
    return trust.holds(&node, sizeof(Node)) && node.kind <= art::Kind::node256 &&
           trust.readable(&node, art::bytes_of(node));
  }

  struct InspectedNode {
    const Node* node;
    unsigned symbol;  // of the child that is being inspected
    unsigned seen;    // children, with that one
  };

  struct Inspection {
    Inspector& inspector;
    std::vector<InspectedNode> path;
    std::size_t first;  // from this node of the path on, the next leaf is the first of each child
    const Leaf* previous;
    std::uint64_t pairs;
  };

  static bool inspect_node(Inspection& inspection, const Node& node) {
    if (!inspection.inspector.readable(&node, sizeof(Node))) return false;
    if (node.kind > art::Kind::node256) return false;
    if (!inspection.inspector.node(&node, art::bytes_of(node))) return false;
    std::vector<InspectedNode>& path = inspection.path;
    if (!path.empty() && node.depth <= path.back().node->depth) return false;
    if (node.state != art::kFree || node.used > art::capacity_of(node) || node.live < 2)
      return false;
    path.push_back({&node, 0, 0});
    return true;
  }

  /// Checks that neighbours first differ in the symbol of the node that parts them: then keys
  /// ascend and all below a node have the same symbols before.
  static bool inspect_leaf(Inspection& inspection, const Leaf& leaf) {
    if (!inspection.inspector.node(&leaf, sizeof leaf)) return false;
    if (!inspection.inspector.pair(leaf.key, leaf.value)) return false;
    const std::vector<InspectedNode>& path = inspection.path;
    for (std::size_t i = inspection.first; i < path.size(); ++i)
      if (Keys::symbol(leaf.key, path[i].node->depth) != path[i].symbol) return false;
    const Leaf* const previous = std::exchange(inspection.previous, &leaf);
    ++inspection.pairs;
    return previous == nullptr ||
           Keys::mismatch(previous->key, leaf.key) == path[inspection.first].node->depth;
  }

  /// Goes on to the next child of a path; 0: there is none.
  static bool inspect_next(Inspection& inspection, Link& link) {
    std::vector<InspectedNode>& path = inspection.path;
    for (; !path.empty(); path.pop_back()) {
      InspectedNode& last = path.back();
      const Child child = art::next_child(*last.node, last.seen == 0 ? 0 : last.symbol + 1);
      if ((link = child.link) != 0) {
        last.symbol = child.symbol;
        if (++last.seen > 1) inspection.first = path.size() - 1;
        return true;
      }
      if (last.seen != last.node->live) return false;
    }
    link = 0;
    return true;
  }

  std::atomic<std::uint64_t> size_{0};
  Node top_{0, art::Kind::node4};  // whose lock guards root_
  Slot root_{0};
};

}  // namespace perdix::tips::plugins
