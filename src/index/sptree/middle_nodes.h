// The middle nodes of an index: their memory, their bounds, and the list that they form (mnode.h).
//
// All nodes lie in one arena, so that a node has a number, which is a function of its address. By
// this number the order that scans keep of a leaf is found, and the write buffer that the node
// usually gets. Before a node's memory can become another node, the order is forgotten.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>

#include "epoch/reclaimer.h"
#include "index/common/codec.h"
#include "index/common/scan_orders.h"
#include "index/sptree/leaf.h"
#include "index/sptree/mnode.h"
#include "pm/access.h"
#include "util/arena.h"
#include "util/striped_counter.h"

namespace perdix::detail::index::sptree {

template <class K>
class MiddleNodes {
 public:
  using Node = Mnode<K>;
  using Low = typename Node::Low;
  using High = typename Node::High;
  using Ref = util::Arena::Ref;

  /// `bounds` is for the bounds that are strings. All three outlive this; the reclaimer is drained
  /// before this goes.
  MiddleNodes(util::Arena& bounds, epoch::Reclaimer& reclaimer, ScanOrders& orders)
      : bounds_(bounds), reclaimer_(reclaimer), orders_(orders) {}
  MiddleNodes(const MiddleNodes&) = delete;
  MiddleNodes& operator=(const MiddleNodes&) = delete;

  /// A node that no other thread knows, which owns its low bound from now on. Throws bad_alloc:
  /// then the caller still owns the bound.
  Node* make(Leaf& leaf, Low low, High high) {
    return new (arena_.allocate(sizeof(Node))) Node(&leaf, low, high);
  }

  /// Like make(), with a low bound made of `low` instead of the leaf's.
  Node* make_with_bound(Leaf& leaf, View<K> low, High high) {
    const Low bound = make_bound(low);
    try {
      return make(leaf, bound, high);
    } catch (const std::bad_alloc&) {
      release_bound(bound);
      throw;
    }
  }

  /// For a node that no other thread knows; its low bound is the caller's again.
  void release(Node* node) noexcept { arena_.release(node, sizeof(Node)); }

  /// Like release(), and releases the node's low bound too.
  void release_with_bound(Node* node) noexcept {
    release_bound(node->low);
    release(node);
  }

  /// Gives an unlinked node's memory back after a grace period.
  void retire(Node* node) {
    const auto dispose = [](void* object, void* owner) {
      auto* retired = static_cast<Node*>(object);
      auto* nodes = static_cast<MiddleNodes*>(owner);
      // Another leaf's node may get the memory: its versions begin as this one's did.
      nodes->orders_.forget(nodes->number_of(*retired));
      nodes->release_with_bound(retired);
    };
    reclaimer_.retire(node, dispose, this);
  }

  /// Throws bad_alloc.
  Low make_bound(View<K> key) { return Bounds<K>::make(bounds_, key); }
  void release_bound(Low low) noexcept { Bounds<K>::release(bounds_, low); }

  /// Recomputes fingerprints and filter from the pairs in these slots (M2).
  static void fill_filter(Node& node, SlotSet slots) {
    node.clear();
    for (const unsigned slot : slots)
      node.add(slot, Codec<K>::hash16_of_word(pm::load(pair_at(*node.leaf(), slot).key)));
  }

  // --- The list ---

  /// The successor's node; nullptr as M1 says.
  Node* next_of(const Node& node) const { return at(node.next.load(std::memory_order_acquire)); }
  void set_next(Node& node, const Node* next) {
    node.next.store(ref(next), std::memory_order_release);
  }

  /// How many nodes are in the list: the code that adds or removes one counts it.
  void count(int more) { count_.add(more); }
  std::int64_t count() const { return count_.sum(); }

  // --- Names of nodes ---

  std::uint64_t number_of(const Node& node) const {
    return arena_.ref(&node) * util::Arena::kGranule / sizeof(Node);
  }

  /// nullptr and 0 stand for each other.
  Ref ref(const Node* node) const { return arena_.ref(node); }
  Node* at(Ref ref) const { return static_cast<Node*>(arena_.piece(ref)); }

  std::size_t bytes_in_use() const noexcept { return arena_.bytes_in_use(); }

 private:
  util::Arena arena_{util::Arena::kMaxRange};  // nodes only: number_of() counts them
  util::Arena& bounds_;
  epoch::Reclaimer& reclaimer_;
  ScanOrders& orders_;
  util::StripedCounter count_;
};

}  // namespace perdix::detail::index::sptree
