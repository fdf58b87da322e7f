// Instant resumption (Zhao et al. 2024, sections 4.6 and 4.7): after a restart, an index is in use
// before its DRAM layers are back.
//
// A leaf is *warm* once it has a middle node, and *cold* before. Cold leaves are exactly as the
// crash or the close left them: an operation that needs one first makes it warm, and restores its
// write buffer from its chain in the log. The cold leaves between two warm ones are a *gap*; the
// warm one to its left has no `next`, though its range ends. So operations notice a gap, and where
// nothing is cold this costs nothing.
//
// The way to a cold leaf: the backup leads to it, or to one left of it; the list of leaves leads
// on. A thread in the background makes all leaves warm in the order of their keys.
//
// Locks: a thread that makes a leaf of a gap warm holds the lock of the node to the left of the
// gap. This excludes all others from the gap:
//   G1. The warm leaf behind a gap is in the top layer, and stays there as long as the gap is: it
//       was put there before the lock was released under which it came back, and only a merge with
//       its left neighbour, which is cold, could take it out.
//   G2. So under that lock a key behind the node is in the gap unless the top layer has a node
//       between the two.
// Threads that need leaves of different gaps don't wait for each other, nor for the background: the
// key of a lookup rarely lies in the gap that the background works in. The locks of resumption.h
// come after the nodes' locks. No lock is held during a wait for a grace period.
//
// Thread-safe, but for start().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

#include "index/sptree/buffers.h"
#include "index/sptree/leaf_backup.h"
#include "index/sptree/leaf_store.h"
#include "index/sptree/locked_node.h"
#include "index/sptree/middle_nodes.h"
#include "index/sptree/node_hints.h"
#include "index/sptree/replay.h"
#include "index/sptree/resumption.h"
#include "index/sptree/top_layer.h"

namespace perdix::detail::index::sptree {

template <class K>
class Resumer {
 public:
  using Node = Mnode<K>;
  using LockedNode = sptree::LockedNode<K>;
  using Key = View<K>;
  using NodeBounds = Bounds<K>;
  using High = typename NodeBounds::High;

  /// `all_warm()` is called without locks and guards when every leaf is warm, by each thread that
  /// has worked on it until then. It may throw. All else outlives this.
  Resumer(pool::PoolCore& pool, LeafStore<K>& leaves, MiddleNodes<K>& nodes,
          NodeBuffers<K>& buffers, NodeHints<K>& hints, TopLayer<K>& top, LeafBackup<K>& backup,
          std::function<void()> all_warm)
      : pool_(pool),
        leaves_(leaves),
        nodes_(nodes),
        buffers_(buffers),
        hints_(hints),
        top_(top),
        backup_(backup),
        all_warm_(std::move(all_warm)) {}

  /// Makes the first leaf warm, whose node becomes the top layer's head, and sees to the others.
  void start(pm::Offset first_leaf, bool in_background);

  /// Makes the key's leaf warm, and returns where its range ends. The caller holds a guard and no
  /// lock.
  High warm(Key key) {
    High high{};
    while (const LockedNode left = lock_before_gap(key, high)) warm_one(*left, key);
    return high;
  }

  /// Makes some leaves warm, in the order of their keys, from where it stopped the last time: so a
  /// log that is written to comes to be resumed, whatever becomes of the thread. The caller holds
  /// the maintenance's lock, and no other.
  void resume_some(unsigned leaves);

  /// For calls that need all leaves: waits for the background, which would only be slower if it
  /// shared the work, and makes the remaining leaves warm itself.
  void require_resumed() {
    resumption_.wait_for_thread();
    if (!resumption_.done()) resume(std::stop_token());
  }

  /// For calls that nothing may run beside: the thread in the background has nothing left to do,
  /// either.
  void require_quiet() {
    require_resumed();
    resumption_.wait_for_end();
  }

  /// Every leaf is warm; and how long that took, 0 before.
  bool done() const { return resumption_.done(); }
  double seconds() const { return resumption_.seconds(); }

 private:
  using Keys = Codec<K>;
  using Low = typename NodeBounds::Low;
  using Version = typename Node::Lock::Version;
  using Buffer = typename NodeBuffers<K>::Buffer;

  void resume(const std::stop_token& stop);
  void finish();
  void prefetch_chains(Key key);
  LockedNode lock_before_gap(Key key, High& high);
  void warm_one(Node& left, Key key);
  Leaf& last_cold(Leaf& first, Key key, bool strictly_below) const;
  Leaf* next_leaf(const Leaf& leaf) const;
  Key low_of(const Leaf& leaf) const;
  Node* make_warm(Leaf& leaf, Low low);
  Node* new_cold_node(Leaf& leaf, Low low);
  void delete_cold_node(Node* node);
  std::uint32_t buffer_for(const Node& node, Survivor& survivor);
  void give_buffer(Node& node, const Survivor& survivor, std::uint32_t number);
  void close_chain(Leaf& leaf, const Survivor& survivor);
  void count_pairs(const Node& node);

  wal::Log& log() const { return *buffers_.log(); }
  bool has_log() const { return buffers_.log() != nullptr; }
  const pm::Persister& pm() const { return pool_.pm(); }

  pool::PoolCore& pool_;
  LeafStore<K>& leaves_;
  MiddleNodes<K>& nodes_;
  NodeBuffers<K>& buffers_;
  NodeHints<K>& hints_;
  TopLayer<K>& top_;
  LeafBackup<K>& backup_;
  const std::function<void()> all_warm_;
  K resumed_until_{};      // by resume_some(), of which there is one at a time
  Resumption resumption_;  // last: what its thread does ends before anything else goes away
};

}  // namespace perdix::detail::index::sptree
