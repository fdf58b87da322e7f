// Instant resumption (Zhao et al. 2024, sections 4.6 and 4.7): after a restart, an index is in use
// before its DRAM layers are back.
//
// A leaf is *warm* once it has a middle node, and *cold* before. Cold leaves are exactly as the
// crash or the close left them. An operation that needs a cold leaf first makes it warm, and
// restores its write buffer from its chain in the log. The cold leaves between two warm ones are a
// *cold range*. The node of the warm leaf at its left has no `next`, though its own range ends. So
// operations notice a cold range, and where nothing is cold this costs nothing.
//
// The way to a cold leaf: the backup leads to it, or to one left of it; the list of leaves leads
// on. A thread in the background makes all leaves warm in the order of their keys.
//
// Locks: a thread that makes a leaf of a cold range warm holds the lock of the node at the left of
// the range. This excludes all other threads from the range:
//   C1. The warm leaf behind a cold range is in the top layer, and stays there as long as the range
//       exists. It was put there before the lock was released under which it became warm, and only
//       a merge with its left neighbour, which is cold, could remove it.
//   C2. So under that lock a key behind the node is in the cold range, unless the top layer has a
//       node between the two.
// Threads that need leaves of different cold ranges do not wait for each other, and rarely for the
// background: the key of a lookup is rarely in the cold range that the background works in. The
// locks of resumption.h come after the nodes' locks. No lock is held during a wait for a grace
// period.
//
// Thread-safe, but for start().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

#include "index/sptree/locked_node.h"
#include "index/sptree/parts.h"
#include "index/sptree/replay.h"
#include "index/sptree/resumption.h"

namespace perdix::detail::index::sptree {

template <class K>
class Resumer {
 public:
  using Node = Mnode<K>;
  using LockedNode = sptree::LockedNode<K>;
  using Key = View<K>;
  using NodeBounds = Bounds<K>;
  using High = typename NodeBounds::High;

  /// The parts outlive this. all_warm() is called when every leaf is warm, without locks and
  /// guards, by each thread that was making leaves warm. It may throw.
  Resumer(Parts<K>& parts, std::function<void()> all_warm)
      : parts_(parts), all_warm_(std::move(all_warm)) {}

  /// Makes the first leaf warm, whose node becomes the top layer's head. `in_background`: a thread
  /// makes the others warm.
  void start(pm::Offset first_leaf, bool in_background);

  /// Makes the key's leaf warm, and returns where its range ends. The caller holds a guard and no
  /// lock.
  High warm(Key key) {
    High high{};
    while (const LockedNode left = lock_before_cold_range(key, high)) warm_one(*left, key);
    return high;
  }

  /// Makes some leaves warm, in the order of their keys, from where it stopped the last time.
  /// Writers call it, so that a log that is written to is resumed even without the background. The
  /// caller holds the lock of the buffers' upkeep, and no other.
  void resume_some(unsigned leaves);

  /// Returns when all leaves are warm. Waits for the background, which would only be slower if it
  /// shared the work, and makes the remaining leaves warm itself.
  void require_resumed() {
    resumption_.wait_for_thread();
    if (!resumption_.done()) resume(std::stop_token());
  }

  /// Returns when all leaves are warm and the thread in the background has ended.
  void require_quiet() {
    require_resumed();
    resumption_.wait_for_end();
  }

  /// Whether every leaf is warm.
  bool done() const { return resumption_.done(); }
  /// From start() until done(); 0 before.
  double seconds() const { return resumption_.seconds(); }

 private:
  using Keys = Codec<K>;
  using Low = typename NodeBounds::Low;
  using Version = typename Node::Lock::Version;
  using Buffer = typename NodeBuffers<K>::Buffer;

  void resume(const std::stop_token& stop);
  void finish();
  void prefetch_chains(Key key);
  LockedNode lock_before_cold_range(Key key, High& high);
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

  wal::Log& log() const { return *parts_.buffers.log(); }
  bool has_log() const { return parts_.buffers.log() != nullptr; }
  const pm::Persister& pm() const { return parts_.pool.pm(); }

  Parts<K>& parts_;
  const std::function<void()> all_warm_;
  K resumed_until_{};      // where resume_some() goes on; one thread at a time calls it
  Resumption resumption_;  // last: its thread ends before any other member is destroyed
};

}  // namespace perdix::detail::index::sptree
