// What writers do to nodes and leaves of an adaptive radix tree: each change of what others can
// see, the lock of a node, and nodes of another size.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include <perdix/tips_locks.h>
#include <perdix/tips_plugin.h>

#include "plugins/art/node.h"

namespace perdix::tips::plugins::art {

/// `Memory` is where the tree lies.
template <class Memory>
struct NodeChanges {
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
      if (node_ != nullptr) node_->state.store(kFree, std::memory_order_release);
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

    explicit operator bool() const { return node_ != nullptr; }
    /// The node has left the tree.
    void retire() {
      node_->state.store(kObsolete, std::memory_order_release);
      Memory::free(std::exchange(node_, nullptr));
    }

   private:
    static bool lock(Node& node) {
      for (Backoff backoff;; backoff.pause()) {
        std::uint8_t state = kFree;
        if (node.state.compare_exchange_weak(state, kLocked)) return true;
        if (state == kObsolete) return false;
      }
    }

    Node* node_;  // null: it is out of the tree
  };

  static bool has_room(Node& node, unsigned symbol) {
    return node.used < capacity_of(node) || slot_of(node, symbol) != nullptr;
  }

  static void put_child(Node& node, unsigned symbol, Link link) {
    change(node.live).fetch_add(1);
    if (Slot* const slot = slot_of(node, symbol)) return set(*slot, link);
    const auto log = [](auto& object) -> auto& { return change(object); };
    as_kind(node, [&](auto& typed) { typed.add(log, symbol, link); });
  }

  static void add_to_new(Node& node, unsigned symbol, Link link) {
    ++node.live;
    const auto as_it_is = [](auto& object) -> auto& { return object; };
    as_kind(node, [&](auto& typed) { typed.add(as_it_is, symbol, link); });
  }

  static Own<Node> new_node(Kind kind, std::uint32_t depth) {
    switch (kind) {
      case Kind::node4: return Own<Node>(make<Node4>(depth).release());
      case Kind::node16: return Own<Node>(make<Node16>(depth).release());
      case Kind::node48: return Own<Node>(make<Node48>(depth).release());
      default: return Own<Node>(make<Node256>(depth).release());
    }
  }

  /// With its lock: the children of a node, in a node with room for this many.
  static Own<Node> copy(const Node& node, std::uint64_t children) {
    Own<Node> to = new_node(kind_for(children), node.depth);
    for (Child child = next_child(node, 0); child.link != 0;
         child = next_child(node, child.symbol + 1))
      add_to_new(*to, child.symbol, child.link);
    return to;
  }
};

}  // namespace perdix::tips::plugins::art
