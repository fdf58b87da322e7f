// Tree: inserting and erasing. A change is prepared without locks, then the one or two nodes
// concerned are locked by upgrade from the versions that the descent saw, which proves that what
// was prepared is still right.
#pragma once

#include <cassert>

#include "art/node_edit.h"
#include "art/retry.h"
#include "art/tree.h"
#include "art/tree_search.h"
#include "pm/probe.h"

namespace perdix::detail::art {

namespace detail {

template <class Node>
struct Neighbours;  // the next larger and smaller kinds of node

template <class Key>
struct Neighbours<Node2<Key>> {
  using Larger = Node4<Key>;
};
template <class Key>
struct Neighbours<Node4<Key>> {
  using Larger = Node16<Key>;
};
template <class Key>
requires(Header<Key>::kHasNode2) struct Neighbours<Node4<Key>> {
  using Larger = Node16<Key>;
  using Smaller = Node2<Key>;
  static constexpr unsigned kShrinkAt = 2;
};
template <class Key>
struct Neighbours<Node16<Key>> {
  using Larger = Node48<Key>;
  using Smaller = Node4<Key>;
  static constexpr unsigned kShrinkAt = 3;
};
template <class Key>
struct Neighbours<Node48<Key>> {
  using Larger = Node256<Key>;
  using Smaller = Node16<Key>;
  static constexpr unsigned kShrinkAt = 12;
};
template <class Key>
struct Neighbours<Node256<Key>> {
  using Smaller = Node48<Key>;
  static constexpr unsigned kShrinkAt = 36;
};

template <class Node>
concept CanGrow = requires {
  typename Neighbours<Node>::Larger;
};
template <class Node>
concept CanShrink = requires {
  typename Neighbours<Node>::Smaller;
};

}  // namespace detail

/// The lock of an edge's node, if it could be taken at the edge's version.
template <class Value, class KeyOf, class Memory>
class Tree<Value, KeyOf, Memory>::WriteLock {
 public:
  explicit WriteLock(const Edge& edge)
      : lock_(edge.lock->try_upgrade(edge.version) ? edge.lock : nullptr) {}
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;
  ~WriteLock() {
    if (lock_ != nullptr) lock_->unlock();
  }

  explicit operator bool() const noexcept { return lock_ != nullptr; }

  /// Unlocks a node that was taken out of the tree.
  void unlock_obsolete() noexcept { std::exchange(lock_, nullptr)->unlock_obsolete(); }

 private:
  Lock* lock_;
};

/// A new node, given back unless it is released into the tree.
template <class Value, class KeyOf, class Memory>
template <class Node>
class Tree<Value, KeyOf, Memory>::Fresh {
 public:
  explicit Fresh(Tree& tree) : tree_(tree), node_(new (tree.memory_.allocate(sizeof(Node))) Node) {}
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;
  ~Fresh() {
    if (node_ != nullptr) tree_.memory_.release(node_, sizeof(Node));
  }

  Node& operator*() const noexcept { return *node_; }

  Ref release() noexcept {
    tree_.bytes_.fetch_add(sizeof(Node), std::memory_order_relaxed);
    return ref_to(*std::exchange(node_, nullptr));
  }

 private:
  Tree& tree_;
  Node* node_;
};

template <class Value, class KeyOf, class Memory>
bool Tree<Value, KeyOf, Memory>::insert(Key key, Value value) {
  return detail::retry([&] { return try_put(key, value, false); }) == nullptr;
}

template <class Value, class KeyOf, class Memory>
Value Tree<Value, KeyOf, Memory>::upsert(Key key, Value value) {
  return detail::retry([&] { return try_put(key, value, true); });
}

/// The value that the key had, nullptr if it had none and now has `value`.
template <class Value, class KeyOf, class Memory>
std::optional<Value> Tree<Value, KeyOf, Memory>::try_put(Key key, Value value, bool replace) {
  assert(value != nullptr && key_of_(value) == key && Traits::size(key) <= kMaxKeySize);
  Stop stop;
  if (!descend<Side::none>(key, stop)) return std::nullopt;
  bool done;
  if (stop.at_prefix()) {
    done = split_prefix(stop, key, value);
  } else if (stop.ref.is_null()) {
    done = add_value(stop, ref_of(value, key, stop.depth));
  } else {
    const auto former = stop.ref.template value<Value>();
    const Key other = key_of_(former);
    if (other == key) {
      if (replace && !set_slot(stop.edge, ref_of(value, key, stop.depth))) return std::nullopt;
      return former;
    }
    done = fork(stop, key, value, other);
  }
  if (!done) return std::nullopt;
  return Value{};
}

template <class Value, class KeyOf, class Memory>
bool Tree<Value, KeyOf, Memory>::set_slot(const Edge& edge, Ref ref) {
  const WriteLock lock(edge);
  if (!lock) return false;
  store(edge, ref);
  return true;
}

/// Fills the empty slot at which the search stopped.
template <class Value, class KeyOf, class Memory>
bool Tree<Value, KeyOf, Memory>::add_value(const Stop& stop, Ref value) {
  if (stop.edge.node.is_null()) return set_slot(stop.edge, value);
  return visit<Key>(stop.edge.node, [&]<class Node>(Node& node) {
    const Entry entry = stop.edge.entry;
    if constexpr (detail::CanGrow<Node>) {
      if (entry != kEnd && is_full(node)) {
        using Larger = typename detail::Neighbours<Node>::Larger;
        pm::on_step("art: a node grows");
        return rebuild<Larger>(stop, node, [&](Larger& larger) {
          copy(node, larger);
          add(larger, entry, value);
        });
      }
    }
    return change(stop, node, [&] { add(node, entry, value); });
  });
}

/// Changes the node's child in place. If it is the first one, the reference to the node changes
/// with it.
template <class Value, class KeyOf, class Memory>
template <class Node, class Change>
bool Tree<Value, KeyOf, Memory>::change(const Stop& stop, Node& node, Change change) {
  if (node.shape().prefix_length == 0 && !has_before(node, stop.edge.entry)) {
    const WriteLock upper_lock(stop.upper);
    if (!upper_lock) return false;
    const WriteLock lock(stop.edge);
    if (!lock) return false;
    change();
    pm::on_step("art: change the first child of a node");
    store(stop.upper, ref_to(node));
    return true;
  }
  pm::on_step("art: change a node");
  const WriteLock lock(stop.edge);
  if (!lock) return false;
  change();
  return true;
}

/// Puts a node with both values in the place of a value with another key (lazy expansion ends
/// here).
template <class Value, class KeyOf, class Memory>
bool Tree<Value, KeyOf, Memory>::fork(const Stop& stop, Key key, Value value, Key other) {
  const unsigned common = Traits::common_prefix(key, other, stop.depth);
  const auto former = stop.ref.template value<Value>();
  const unsigned depth = stop.depth + common;
  return with_smallest_node(Prefix<Key>::of(key, stop.depth, common), [&](auto& node) {
    add(*node, Traits::entry(key, depth), ref_of(value, key, depth + 1));
    add(*node, Traits::entry(other, depth), ref_of(former, other, depth + 1));
    pm::on_step("art: fork");
    const WriteLock lock(stop.edge);
    if (!lock) return false;
    store(stop.edge, node.release());
    return true;
  });
}

/// Calls build(fresh) for a new node of the smallest kind that has the prefix and two children.
template <class Value, class KeyOf, class Memory>
template <class Build>
bool Tree<Value, KeyOf, Memory>::with_smallest_node(const Prefix<Key>& prefix, Build build) {
  if constexpr (Head::kHasNode2) {
    if (prefix.length() == 0) {
      Fresh<Node2<Key>> node(*this);
      return build(node);
    }
  }
  Fresh<Node4<Key>> node(*this);
  (*node).set_prefix(prefix);
  return build(node);
}

/// Puts a node above the one whose prefix the key doesn't have.
template <class Value, class KeyOf, class Memory>
bool Tree<Value, KeyOf, Memory>::split_prefix(const Stop& stop, Key key, Value value) {
  const unsigned agreed = stop.prefix->agreed;
  const auto rest = prefix_after_split(stop);
  if (!rest) return false;
  const unsigned depth = stop.depth + agreed;
  return with_smallest_node(Prefix<Key>::of(key, stop.depth, agreed), [&](auto& upper) {
    add(*upper, Traits::entry(key, depth), ref_of(value, key, depth + 1));
    Head& lower = *stop.ref.template node<Head>();
    pm::on_step("art: split a prefix");
    const WriteLock edge_lock(stop.edge);
    if (!edge_lock) return false;
    const WriteLock lower_lock({&lower.lock, stop.prefix->version});
    if (!lower_lock) return false;
    lower.set_prefix(*rest);
    pm::on_step("art: a prefix is shorter and not below another node");
    add(*upper, stop.prefix->other,
        visit<Key>(stop.ref, [](const auto& node) { return ref_to(node); }));
    store(stop.edge, upper.release());
    return true;
  });
}

template <class Value, class KeyOf, class Memory>
std::optional<Prefix<typename Tree<Value, KeyOf, Memory>::Key>>
Tree<Value, KeyOf, Memory>::prefix_after_split(const Stop& stop) const {
  const PrefixStop& at = *stop.prefix;
  const unsigned gone = at.agreed + 1;
  if (at.prefix.length() == at.prefix.stored()) return at.prefix.without_first(gone);
  Value witness = at.witness;
  if (witness == nullptr) {
    const auto found = outermost_below<Side::after>(stop);
    if (!found) return std::nullopt;
    witness = *found;
  }
  return Prefix<Key>::of(key_of_(witness), stop.depth + gone, at.prefix.length() - gone);
}

template <class Value, class KeyOf, class Memory>
Value Tree<Value, KeyOf, Memory>::erase(Key key) {
  return detail::retry([&] { return try_erase(key); });
}

template <class Value, class KeyOf, class Memory>
std::optional<Value> Tree<Value, KeyOf, Memory>::try_erase(Key key) {
  Stop stop;
  if (!descend<Side::none>(key, stop)) return std::nullopt;
  if (stop.at_prefix() || stop.ref.is_null()) return Value{};
  const auto value = stop.ref.template value<Value>();
  if (key_of_(value) != key) return Value{};
  const auto remove_from = [&](auto& node) { return remove_value(stop, node); };
  const bool done =
      stop.edge.node.is_null() ? set_slot(stop.edge, {}) : visit<Key>(stop.edge.node, remove_from);
  if (!done) return std::nullopt;
  return value;
}

template <class Value, class KeyOf, class Memory>
template <class Node>
bool Tree<Value, KeyOf, Memory>::remove_value(const Stop& stop, Node& node) {
  const Entry entry = stop.edge.entry;
  if (entries(node) == 2) return collapse(stop, node);
  if constexpr (detail::CanShrink<Node>) {
    using Smaller = typename detail::Neighbours<Node>::Smaller;
    const bool fits = Smaller::kKind != Kind::node2 || node.shape().prefix_length == 0;
    if (fits && entry != kEnd && node.shape().count - 1u <= detail::Neighbours<Node>::kShrinkAt) {
      pm::on_step("art: a node shrinks");
      return rebuild<Smaller>(stop, node, [&](Smaller& smaller) { copy(node, smaller, entry); });
    }
  }
  return change(stop, node, [&] { remove(node, entry); });
}

/// Takes out a node that would keep one entry: its child takes its place and, if that is a node,
/// its prefix.
template <class Value, class KeyOf, class Memory>
template <class Node>
bool Tree<Value, KeyOf, Memory>::collapse(const Stop& stop, Node& node) {
  Head* replaced = nullptr;
  pm::on_step("art: a node goes");
  {
    const WriteLock upper_lock(stop.upper);
    if (!upper_lock) return false;
    WriteLock lock(stop.edge);
    if (!lock) return false;
    Ref survivor;
    for_each_child(node, [&](Entry entry, Ref ref) {
      if (entry == stop.edge.entry) return;
      survivor = ref.with_least_byte(least_byte(node.prefix(), entry));
      if (!ref.is_node()) return;
      if (const Ref wider = with_prefix_below(node, entry, ref); !wider.is_null()) {
        replaced = ref.template node<Head>();
        survivor = wider;
      }
    });
    store(stop.upper, survivor);
    lock.unlock_obsolete();
  }
  if constexpr (Head::kHasNode2) {
    if (replaced != nullptr) retire(static_cast<Node2<Key>&>(*replaced));
  }
  retire(node);
  return true;
}

/// The node below `upper`, which goes away, gets the upper one's prefix and what led to it. A Node2
/// has no place for them: it becomes obsolete, and a new node, which is returned, has its children.
template <class Value, class KeyOf, class Memory>
template <class Node>
Ref Tree<Value, KeyOf, Memory>::with_prefix_below(const Node& upper, Entry entry, Ref ref) {
  // It can't be obsolete: taking it out would need the lock of `upper`.
  const auto byte = static_cast<std::uint8_t>(entry);
  if constexpr (Head::kHasNode2) {
    if (ref.kind() == Kind::node2) {
      Fresh<Node4<Key>> wider(*this);
      auto& lower = *ref.template node<Node2<Key>>();
      lower.lock.lock();
      copy(lower, *wider);
      (*wider).set_prefix(Prefix<Key>::joined(upper.prefix(), byte, {}));
      lower.lock.unlock_obsolete();
      return wider.release();
    }
  }
  Head& lower = *ref.template node<Head>();
  lower.lock.lock();
  pm::on_step("art: a prefix grows");
  lower.set_prefix(Prefix<Key>::joined(upper.prefix(), byte, lower.prefix()));
  lower.lock.unlock();
  return {};
}

/// Replaces a node by one of another kind, which fill(node) gives its children and its prefix.
template <class Value, class KeyOf, class Memory>
template <class To, class From, class Fill>
bool Tree<Value, KeyOf, Memory>::rebuild(const Stop& stop, From& from, Fill fill) {
  Fresh<To> to(*this);
  {
    const WriteLock upper_lock(stop.upper);
    if (!upper_lock) return false;
    WriteLock lock(stop.edge);
    if (!lock) return false;
    fill(*to);
    pm::on_step("art: put a node in the place of another");
    store(stop.upper, to.release());
    lock.unlock_obsolete();
  }
  retire(from);
  return true;
}

/// A reference to a value whose key has `depth` bytes that lead there.
template <class Value, class KeyOf, class Memory>
Ref Tree<Value, KeyOf, Memory>::ref_of(Value value, Key key, unsigned depth) noexcept {
  return Ref::of_value(value, Traits::byte_or_zero(key, depth));
}

/// Sets the child of an edge whose lock is held.
template <class Value, class KeyOf, class Memory>
void Tree<Value, KeyOf, Memory>::store(const Edge& edge, Ref ref) noexcept {
  if (edge.node.is_null()) return root_.store(ref);
  visit<Key>(edge.node, [&](auto& node) { set(node, edge.entry, ref); });
}

template <class Value, class KeyOf, class Memory>
template <class Node>
void Tree<Value, KeyOf, Memory>::retire(Node& node) noexcept {
  bytes_.fetch_sub(sizeof(Node), std::memory_order_relaxed);
  memory_.retire(&node);
}

template <class Value, class KeyOf, class Memory>
void Tree<Value, KeyOf, Memory>::clear() noexcept {
  // The nodes still to be freed form a list, linked through the nodes themselves: no recursion,
  // whose depth could be that of a long key, and no memory that might not be there.
  Ref list;
  const auto push = [&](Ref ref) {
    if (!ref.is_node()) return;
    ref.node<Head>()->set_link(list);
    list = ref;
  };
  push(root_.load());
  root_.store({});
  while (!list.is_null()) {
    const Ref ref = list;
    list = ref.node<Head>()->link();
    visit<Key>(ref, [&]<class Node>(Node& node) {
      for_each_child(node, [&](Entry, Ref below) { push(below); });
      memory_.release(&node, sizeof(Node));
    });
  }
  bytes_.store(0, std::memory_order_relaxed);
}

}  // namespace perdix::detail::art
