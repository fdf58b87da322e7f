// A lock-free external binary search tree (Natarajan and Mittal, PPoPP 2014): pairs are in leaves,
// and a node parts what is below it. Nothing balances it, so it is for keys that come in no order.
//
//   B1. A node has two children at each moment. Keys on its left are below its key, the others not.
//   B2. The key of a node lies in the node: it outlives the pair that it was made for.
//   B3. To remove a leaf, its edge is flagged, then the edge beside it is tagged. An edge with
//       either mark never changes again. So a removed node leads to what was below it, which may
//       have received keys of the other side since. A scan that meets such a key starts again from
//       the root. If that happens every time, the tree is damaged, and the result of the scan shows
//       it.
//   B4. The exchange of an edge takes all nodes between two places out of the tree, each with the
//       leaf that was flagged below it. The thread that did it frees these, no other does.
//
// Calls that write one key come one after another; all others may meet.
//
// `Memory` is where it lies: Volatile or Durable (perdix/tips_plugin.h). Volatile frees memory
// immediately, so its readers must exclude writers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <perdix/tips_plugin.h>

namespace perdix::tips::plugins {

template <class Memory, class Keys>
class LfBst {
 public:
  bool put(Word key, Word value, Word& old) {
    for (Own<Leaf> leaf;;) {
      const Way way = seek(key);
      if (holds(way.edge, key)) {
        std::atomic<Word>& to = change(leaf_at(way.edge).value);
        old = to.exchange(value, std::memory_order_acq_rel);
        return true;
      }
      if (leaf == nullptr) leaf.reset(new (Memory::allocate(sizeof(Leaf))) Leaf{key, value});
      if (!add(way, leaf)) continue;
      change(size_).fetch_add(1);
      return false;
    }
  }

  bool erase(Word key, Word& old_key, Word& old_value) {
    const Leaf* leaf = nullptr;  // flagged by this call
    for (;;) {
      Way way = seek(key);
      if (leaf == nullptr) {
        if (!holds(way.edge, key)) return false;
        if (!flag(way, key)) continue;
        leaf = &leaf_at(way.edge);
        old_key = leaf->key, old_value = leaf->value.load(std::memory_order_acquire);
      } else if (is_leaf(way.edge) && &leaf_at(way.edge) != leaf) {
        break;  // another thread has taken it away
      }
      if (way.edge == 0 || take_away(way, key)) break;
    }
    change(size_).fetch_sub(1);
    return true;
  }

  bool find(Word key, Word& value) const { return find(Trusting(), key, value); }

  template <class Trust>
  bool find(const Trust& trust, Word key, Word& value) const {
    Edge edge = root_.load(std::memory_order_acquire);
    while (is_node(edge)) {
      if (!is_readable(trust, edge)) return trust.damaged();
      edge = side(std::as_const(node_at(edge)), key).load(std::memory_order_acquire);
    }
    if (edge == 0) return false;
    if (!trust.readable(address_of(edge), sizeof(Leaf))) return trust.damaged();
    const Leaf& leaf = leaf_at(edge);
    if (!trust.key(leaf.key)) return trust.damaged();
    if (!Keys::equal(leaf.key, key)) return false;
    value = leaf.value.load(std::memory_order_acquire);
    return true;
  }

  std::uint64_t size() const { return size_.load(); }

  void scan(const Word* from, void* context, ShowPair show) const {
    std::vector<Branch> path{{&root_}};  // what is still to come; the last one is next
    Start start{from};
    const Leaf* last = nullptr;
    for (unsigned tries = 1; !path.empty();) {
      const auto [branch, edge] = descend(path, start);
      if (edge == 0) return;
      const Leaf& leaf = leaf_at(edge);
      const bool in_place = branch.may_have(leaf.key);
      if (!in_place && tries < kMaxTries) {  // B3
        ++tries;
        if (last != nullptr) start = {&last->key, true};
        path.assign(1, {&root_});
        continue;
      }
      if (in_place && start.is_after(leaf.key)) continue;
      if (!show(context, leaf.key, leaf.value.load(std::memory_order_acquire))) return;
      last = &leaf;
      tries = 1;
    }
  }

  bool find_last(Word bound, bool strictly, Word& key, Word& value) const {
    const auto is_within = [&](Word other) {
      return strictly ? Keys::less(other, bound) : !Keys::less(bound, other);
    };
    for (unsigned tries = 1;; ++tries) {
      const Slot* before = nullptr;  // to what is left of the way
      Edge edge = root_.load(std::memory_order_acquire);
      while (is_node(edge)) {
        const Node& node = node_at(edge);
        const bool within = is_within(node.key);
        if (within) before = &node.left;
        edge = (within ? node.right : node.left).load(std::memory_order_acquire);
      }
      if (edge == 0) return false;
      if (!is_within(leaf_at(edge).key)) {
        if (before == nullptr) return false;
        edge = last_below(before->load(std::memory_order_acquire));
      }
      const Leaf& leaf = leaf_at(edge);
      // What was left of a node that has left the tree may have keys of its right since: B3.
      if (!is_within(leaf.key) && tries < kMaxTries) continue;
      key = leaf.key, value = leaf.value.load(std::memory_order_acquire);
      return true;
    }
  }

  /// From left to right: leaves, and between two of them the node that parts them.
  bool inspect(Inspector& inspector) const {
    std::vector<const Node*> path;
    const Node* between = nullptr;
    Edge edge = root_;
    if (edge == 0) return size_ == 0;
    for (std::uint64_t pairs = 1;; ++pairs) {
      for (; is_node(edge); edge = path.back()->left) {
        if (!inspect_node(inspector, edge)) return false;
        path.push_back(&node_at(edge));
      }
      if (!inspect_leaf(inspector, edge)) return false;
      const Leaf& leaf = leaf_at(edge);
      if (between != nullptr && Keys::less(leaf.key, between->key)) return false;
      if (path.empty()) return pairs == size_;
      between = path.back();
      path.pop_back();
      if (!Keys::less(leaf.key, between->key)) return false;
      edge = between->right;
    }
  }

  void renew_locks() {}  // it has none

  /// A leaf, and a node with its key.
  static constexpr PutTakes put_takes() { return {{{sizeof(Leaf), 1}, {sizeof(Node), 1, true}}}; }

 private:
  /// The address of a node, or of a leaf and kLeaf; 0: the tree is empty. With marks.
  using Edge = std::uint64_t;
  using Slot = std::atomic<Edge>;
  static constexpr Edge kLeaf = 1, kFlag = 2, kTag = 4;
  static constexpr Edge kMarks = kFlag | kTag, kBits = kMarks | kLeaf;
  static constexpr unsigned kMaxTries = 100;  // of a way; one fails if a node of it leaves the tree

  struct Leaf {
    const Word key;
    std::atomic<Word> value;
  };

  struct Node {
    Word key;
    Slot left, right;
    // then what belongs to the key
  };

  struct Release {
    void operator()(void* block) const { Memory::free(block); }
  };
  /// Of what no other thread can find.
  template <class T>
  using Own = std::unique_ptr<T, Release>;

  /// Each change of what others can see.
  template <class T>
  static T& change(T& object) {
    Memory::add(&object, sizeof object);
    return object;
  }
  static bool exchange(Slot& slot, Edge from, Edge to) {
    return change(slot).compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }

  static bool is_leaf(Edge edge) { return (edge & kLeaf) != 0; }
  static bool is_node(Edge edge) { return edge != 0 && !is_leaf(edge); }
  /// Of a leaf or a node; in a damaged tree it may be any.
  static void* address_of(Edge edge) { return reinterpret_cast<void*>(edge & ~kBits); }
  static Leaf& leaf_at(Edge edge) { return *static_cast<Leaf*>(address_of(edge)); }
  static Node& node_at(Edge edge) { return *static_cast<Node*>(address_of(edge)); }
  static Edge edge_to(const Leaf& leaf) { return reinterpret_cast<Edge>(&leaf) | kLeaf; }
  static Edge edge_to(const Node& node) { return reinterpret_cast<Edge>(&node); }
  static bool holds(Edge edge, Word key) {
    return edge != 0 && Keys::equal(leaf_at(edge).key, key);
  }
  static const Slot& side(const Node& node, Word key) {
    return Keys::less(key, node.key) ? node.left : node.right;
  }
  static Slot& side(Node& node, Word key) {
    return Keys::less(key, node.key) ? node.left : node.right;
  }
  static Slot& beside(Node& node, const Slot& slot) {
    return &slot == &node.left ? node.right : node.left;
  }

  /// A slot, and the nodes that bound the keys below it; null: no node does.
  struct Branch {
    const Slot* slot;
    const Node* low = nullptr;
    const Node* high = nullptr;

    bool may_have(Word key) const {
      return (low == nullptr || !Keys::less(key, low->key)) &&
             (high == nullptr || Keys::less(key, high->key));
    }
  };

  /// Where a scan begins: at a key or behind it; null: at the first one.
  struct Start {
    const Word* key;
    bool behind = false;

    bool is_after(Word other) const {
      if (key == nullptr) return false;
      return behind ? !Keys::less(*key, other) : Keys::less(other, *key);
    }
    bool is_right_of(const Node& node) const {
      return key != nullptr && !Keys::less(*key, node.key);
    }
  };

  /// Takes the last branch of a path down to a slot without a node. What is on the right of its way
  /// becomes branches of the path.
  static std::pair<Branch, Edge> descend(std::vector<Branch>& path, const Start& start) {
    Branch branch = path.back();
    path.pop_back();
    Edge edge = branch.slot->load(std::memory_order_acquire);
    while (is_node(edge)) {
      const Node& node = node_at(edge);
      const Branch right{&node.right, &node, branch.high};
      if (start.is_right_of(node)) {
        branch = right;
      } else {
        path.push_back(right);
        branch = {&node.left, branch.low, &node};
      }
      edge = branch.slot->load(std::memory_order_acquire);
    }
    return {branch, edge};
  }

  static Edge last_below(Edge edge) {
    while (is_node(edge)) edge = node_at(edge).right.load(std::memory_order_acquire);
    return edge;
  }

  /// The way of a key.
  struct Way {
    Slot* above;  // of the last edge to a node that has no tag
    Edge below;   // that edge
    Node* node;   // whose slot the way ends with; null: it ends at the root
    Slot* slot;
    Edge edge;  // of `slot`: to a leaf, or to nothing
  };

  Way seek(Word key) {
    Way way{&root_, 0, nullptr, &root_, root_.load(std::memory_order_acquire)};
    while (is_node(way.edge)) {
      if ((way.edge & kTag) == 0) way.above = way.slot, way.below = way.edge;
      way.node = &node_at(way.edge);
      way.slot = &side(*way.node, key);
      way.edge = way.slot->load(std::memory_order_acquire);
    }
    return way;
  }

  // What follows returns false if another thread was in the way, whom it helps.

  bool add(const Way& way, Own<Leaf>& leaf) {
    if ((way.edge & kMarks) != 0) return take_away(way, leaf->key), false;
    Own<Node> node;
    if (way.edge != 0) node = new_node(way.edge, *leaf);
    const Edge to = node == nullptr ? edge_to(*leaf) : edge_to(*node);
    if (!exchange(*way.slot, way.edge, to)) return false;
    leaf.release(), node.release();
    return true;
  }

  static Own<Node> new_node(Edge edge, const Leaf& leaf) {
    const Leaf& other = leaf_at(edge);
    const bool less = Keys::less(leaf.key, other.key);
    const Word low = less ? leaf.key : other.key, high = less ? other.key : leaf.key;
    const std::size_t bytes = sizeof(Node) + Keys::separator_bytes(low, high);
    Own<Node> node(new (Memory::allocate(bytes)) Node{});
    node->key = Keys::separator(low, high, node.get() + 1);
    node->left.store(less ? edge_to(leaf) : edge, std::memory_order_relaxed);
    node->right.store(less ? edge : edge_to(leaf), std::memory_order_relaxed);
    return node;
  }

  /// The leaf that a way ends at is to go.
  bool flag(Way& way, Word key) {
    if ((way.edge & kMarks) != 0) return take_away(way, key), false;
    if (!exchange(*way.slot, way.edge, way.edge | kFlag)) return false;
    way.edge |= kFlag;
    return true;
  }

  /// A way ends with a marked edge: its leaf or the one beside it goes, with the node above.
  bool take_away(const Way& way, Word key) {
    if (way.node == nullptr) {
      if (!exchange(root_, way.edge, 0)) return false;
      release(way.edge);
      return true;
    }
    Slot& other = beside(*way.node, *way.slot);
    const bool ends = (way.edge & kFlag) != 0;
    Slot& kept = ends ? other : *way.slot;
    const Edge rest = change(kept).fetch_or(kTag, std::memory_order_acq_rel) & ~kTag;
    if (!exchange(*way.above, way.below, rest)) return false;
    release_between(node_at(way.below), *way.node, key);
    release((ends ? *way.slot : other).load(std::memory_order_relaxed));
    Release()(way.node);
    return true;
  }

  /// Nodes that were taken out together, each with its leaf beside the way: B4.
  static void release_between(Node& first, const Node& last, Word key) {
    for (Node* node = &first; node != &last;) {
      Slot& slot = side(*node, key);
      release(beside(*node, slot).load(std::memory_order_relaxed));
      Node& next = node_at(slot.load(std::memory_order_relaxed));
      Release()(node);
      node = &next;
    }
  }

  static void release(Edge edge) { Release()(&leaf_at(edge)); }

  template <class Trust>
  static bool is_readable(const Trust& trust, Edge edge) {
    if constexpr (!Trust::kDoubts) return true;
    const void* const node = address_of(edge);
    const std::size_t bytes =
        bytes_of(edge, [&](std::size_t some) { return trust.holds(node, some); });
    return bytes != 0 && trust.readable(node, bytes);
  }

  /// How large a node is, of which no more is read than is readable; 0: it is none.
  template <class Readable>
  static std::size_t bytes_of(Edge edge, Readable readable) {
    if (!readable(sizeof(Node) + Keys::kSeparatorHead)) return 0;
    const Node& node = node_at(edge);
    if (!Keys::is_separator_at(node.key, &node + 1)) return 0;
    return sizeof(Node) + Keys::separator_bytes(node.key);
  }

  static bool inspect_node(Inspector& inspector, Edge edge) {
    const void* const node = address_of(edge);
    const std::size_t bytes =
        bytes_of(edge, [&](std::size_t some) { return inspector.readable(node, some); });
    return (edge & kMarks) == 0 && bytes != 0 && inspector.node(node, bytes);
  }

  static bool inspect_leaf(Inspector& inspector, Edge edge) {
    if (!is_leaf(edge) || (edge & kMarks) != 0) return false;
    if (!inspector.node(address_of(edge), sizeof(Leaf))) return false;
    return inspector.pair(leaf_at(edge).key, leaf_at(edge).value);
  }

  Slot root_{0};
  std::atomic<std::uint64_t> size_{0};
};

}  // namespace perdix::tips::plugins
