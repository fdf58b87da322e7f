// An adaptive radix tree whose readers take no lock and wait for none (Leis et al. 2013; ROWEX in
// Leis et al. 2016). art/node.h has the nodes and their invariants, art/node_changes.h what writers
// do to them.
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
#include <optional>
#include <vector>

#include <perdix/tips_locks.h>
#include <perdix/tips_plugin.h>

#include "plugins/art/inspection.h"
#include "plugins/art/node.h"
#include "plugins/art/node_changes.h"

namespace perdix::tips::plugins {

template <class Memory, class Keys>
class Art {
  using Link = art::Link;
  using Slot = art::Slot;
  using Leaf = art::Leaf;
  using Node = art::Node;
  using Child = art::Child;
  using Nodes = art::NodeChanges<Memory>;
  template <class T>
  using Own = typename Nodes::template Own<T>;
  using Locked = typename Nodes::Locked;

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
      if (leaf == nullptr) leaf = Nodes::template make<Leaf>(key, value);
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
    return art::TreeInspection<Keys>(inspector).is_sound(root_, size_);
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
    std::atomic<Word>& to = Nodes::change(art::leaf_at(place.link).value);
    old = to.load(std::memory_order_relaxed);
    to.store(value, std::memory_order_release);
    return true;
  }

  bool add_first(Own<Leaf>& leaf) {
    const Locked lock(top_);
    if (root_ != 0) return false;
    Nodes::set(root_, art::link_to(*leaf.release()));
    Nodes::change(size_).fetch_add(1);
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
    Nodes::change(size_).fetch_add(1);
    return true;
  }

  /// A new node on an edge, for what is there and a leaf.
  static bool split_edge(const Place& place, const Leaf& leaf, std::size_t at) {
    const Locked lock(*place.edge.node);
    if (!lock || *place.edge.slot != place.link) return false;
    const Leaf& other = any_leaf(place.link);
    if (Keys::mismatch(other.key, leaf.key) != at) return false;
    Own<art::Node4> node = Nodes::template make<art::Node4>(static_cast<std::uint32_t>(at));
    Nodes::add_to_new(*node, Keys::symbol(other.key, at), place.link);
    Nodes::add_to_new(*node, Keys::symbol(leaf.key, at), art::link_to(leaf));
    Nodes::set(*place.edge.slot, art::link_to(*node.release()));
    return true;
  }

  /// A leaf below a node that `edge` leads to.
  static bool add_child(const Edge& edge, Node& node, const Leaf& leaf) {
    const unsigned symbol = Keys::symbol(leaf.key, node.depth);
    std::optional<Locked> outer;
    if (!Nodes::has_room(node, symbol)) {
      outer.emplace(*edge.node);
      if (!*outer || *edge.slot != art::link_to(node)) return false;
    }
    Locked lock(node);
    if (!lock || art::child_of(node, symbol) != 0) return false;
    if (Keys::mismatch(any_leaf(art::link_to(node)).key, leaf.key) != node.depth) return false;
    if (Nodes::has_room(node, symbol)) {
      Nodes::put_child(node, symbol, art::link_to(leaf));
      return true;
    }
    if (!outer) return false;
    Own<Node> larger = Nodes::copy(node, node.live + 1);
    Nodes::add_to_new(*larger, symbol, art::link_to(leaf));
    replace(edge, lock, *larger.release());
    return true;
  }

  /// With the lock of the edge's node.
  static void replace(const Edge& edge, Locked& old, const Node& node) {
    Nodes::set(*edge.slot, art::link_to(node));
    old.retire();
  }

  /// The leaf that a way has led to.
  bool remove(const Place& place) {
    Node& node = *place.edge.node;
    const bool leaves_one = &node != &top_ && node.live == 2;
    if (!(leaves_one ? remove_with_node(place) : remove_alone(place))) return false;
    Nodes::change(size_).fetch_sub(1);
    if (!leaves_one && &node != &top_ && art::is_sparse(node)) shrink(place.above, node);
    return true;
  }

  bool remove_alone(const Place& place) {
    Node& node = *place.edge.node;
    const Locked lock(node);
    if (!lock || *place.edge.slot != place.link) return false;
    if (&node != &top_) {
      if (node.live == 2) return false;
      Nodes::change(node.live).fetch_sub(1);
    }
    Nodes::set(*place.edge.slot, 0);
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
    Nodes::set(*place.above.slot, other.link);
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
      replace(edge, lock, *Nodes::copy(node, node.live).release());
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

  std::atomic<std::uint64_t> size_{0};
  Node top_{0, art::Kind::node4};  // whose lock guards root_
  Slot root_{0};
};

}  // namespace perdix::tips::plugins
