// Hints of middle nodes (hints.h): which are noted, and when the table grows.
//
// Thread-safe; the caller holds an epoch::Guard, but for grow(). An index of strings has no hints.
#pragma once

#include <cstdint>
#include <new>

#include <perdix/types.h>

#include "epoch/guard.h"
#include "index/sptree/buffers.h"
#include "index/sptree/hints.h"
#include "index/sptree/middle_nodes.h"
#include "index/sptree/top_layer.h"

namespace perdix::detail::index::sptree {

template <class K>
class NodeHints {
 public:
  using Node = Mnode<K>;
  using NodeBounds = Bounds<K>;

  /// All outlive this; the reclaimer is drained before the arena goes.
  NodeHints(util::Arena& arena, epoch::Reclaimer& reclaimer, const MiddleNodes<K>& nodes,
            const NodeBuffers<K>& buffers, const TopLayer<K>& top)
      : hints_(arena, reclaimer), nodes_(nodes), buffers_(buffers), top_(top) {}

  /// The part of a budget of DRAM for buffers that hints may take, since only buffers need them.
  static constexpr std::uint64_t share_of(std::uint64_t budget) {
    if constexpr (!Codec<K>::kInline) return 0;
    constexpr std::uint64_t kShare = 16;
    return budget == kUnlimited ? budget : budget / kShare;
  }

  /// As Hints::set_budget().
  void set_budget(std::uint64_t budget) { hints_.set_budget(budget); }

  /// The node that probably has the key; it may be gone, so nothing of it may be read. nullptr:
  /// none is known.
  const Node* of(View<K> key) const {
    if constexpr (Codec<K>::kInline) return nodes_.at(hints_.of(key));
    return nullptr;
  }

  /// Tells writers where the node is, if there are buffers. Without buffers they wait for two
  /// fences, and have time to search during these. If its range changes at the same time, the hint
  /// is out of date.
  void note(const Node& node) {
    if constexpr (Codec<K>::kInline) {
      if (!buffers_.any()) return;
      hints_.note(node.low, node.high.load(std::memory_order_relaxed), nodes_.ref(&node));
    }
  }

  /// Gives the hints more room if there are many more nodes by now. Keys are taken to lie about
  /// where the bounds of leaves do: but for the first, whose bound is not a key's. No lock is held:
  /// it may take milliseconds.
  void grow() {
    if constexpr (Codec<K>::kInline) {
      if (!buffers_.any()) return;
      const epoch::Guard guard;  // for the table, too: another thread may make a new one
      const auto nodes = static_cast<std::uint64_t>(nodes_.count());
      if (!hints_.growth_due(nodes)) return;
      const Node* second = nodes_.next_of(*top_.head());
      const Node* last = top_.locate_surely(NodeBounds::open());
      if (second == nullptr || last->low < second->low) return;
      try {
        if (!hints_.grow(nodes, second->low, last->low)) return;
      } catch (const std::bad_alloc&) {
        return;  // searches take as long as they did
      }
      for (const Node* node = second; node != nullptr; node = nodes_.next_of(*node)) note(*node);
    }
  }

 private:
  Hints hints_;
  const MiddleNodes<K>& nodes_;
  const NodeBuffers<K>& buffers_;
  const TopLayer<K>& top_;
};

}  // namespace perdix::detail::index::sptree
