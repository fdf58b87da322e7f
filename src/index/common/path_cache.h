// The cached search path of an index whose nodes lie in PM ("Caching", Zhao et al. 2024, section
// 3.3): a radix tree in DRAM that leads to the nodes on the lowest cached level, so that a search
// reads none of those above. Nodes are added when they are added to the index; after a restart,
// when they are used and by a thread in the background.
//
// It is a cache: where it lacks a node, for lack of memory or since it was not filled yet, it leads
// to one further left. complete() says whether it lacks none. Otherwise the caller compares, and
// searches through PM if its node is far.
//
//   P1. A node in the cache is part of the index, or its removal has not committed. A thread that
//       adds a node holds a latch without which the node can't be removed. A thread that removes a
//       node from the index first takes it out of the cache, with that latch.
//   P2. Complete: every node of the level, but those whose latch is held, is in it.
//
// Thread-safe. The caller holds an epoch::Guard.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <stop_token>
#include <unordered_set>

#include <perdix/types.h>

#include "epoch/reclaimer.h"
#include "index/common/groups.h"
#include "index/common/node_radix.h"
#include "util/arena.h"

namespace perdix::detail::index {

template <class Node, class KeyOf>
class PathCache {
 public:
  using Radix = NodeRadix<Node, KeyOf>;
  using Key = typename Radix::Key;

  /// The reclaimer outlives this. At most about `budget` bytes of DRAM: what the arena takes, whose
  /// pieces that are free cannot be used for other sizes.
  PathCache(epoch::Reclaimer& reclaimer, std::uint64_t budget, KeyOf key_of)
      : drain_{reclaimer}, radix_(arena_, reclaimer, key_of), budget_(budget) {}

  /// A node that begins at the key or before it, or, `strictly`, before it; as a rule the last one.
  /// nullptr if it knows of none.
  Node* before(Key key, bool strictly) const {
    return strictly ? radix_.locate_below(key) : radix_.locate(key);
  }

  /// Sets `nodes` to before() of some keys, at most kGroup, so that the waits for memory overlap.
  void before(std::span<const Key> keys, bool strictly, std::span<Node*> nodes) const {
    std::array<typename Radix::Lookahead, kGroup> ways;
    for (std::size_t i = 0; i < keys.size(); ++i) ways[i] = radix_.look_ahead(keys[i]);
    for (bool on_the_way = true; on_the_way;) {
      on_the_way = false;
      for (std::size_t i = 0; i < keys.size(); ++i) on_the_way |= ways[i].step();
    }
    for (std::size_t i = 0; i < keys.size(); ++i)
      __builtin_prefetch(radix_.guess(ways[i], keys[i]));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      nodes[i] = radix_.start_at(ways[i], keys[i]);
      if (strictly && nodes[i] != nullptr && !(radix_.key_of(*nodes[i]) < keys[i]))
        nodes[i] = radix_.left_of(keys[i]);
    }
  }

  /// Whether it has a node.
  bool has(const Node& node) const { return radix_.find(radix_.key_of(node)) == &node; }

  /// Whether it lacks no node (P2).
  bool complete() const { return state_.load(std::memory_order_acquire) == State::complete; }

  /// Whether nodes of before the opening may be missing, and there was room for all so far.
  bool filling() const { return state_.load(std::memory_order_acquire) == State::filling; }

  /// Every node of the level was added, or is being added by the thread that makes it.
  void set_complete() {
    State filling = State::filling;
    state_.compare_exchange_strong(filling, State::complete, std::memory_order_acq_rel);
  }

  /// Adds a node, if it is not there (P1). Without room for it the node is found from its left.
  /// False if there was none.
  bool add(Node& node) noexcept {
    try {
      if (!has_room()) throw std::bad_alloc();
      radix_.add(node);
      return true;
    } catch (const std::bad_alloc&) {
      state_.store(State::lacking, std::memory_order_release);
      return false;
    }
  }

  /// Takes a node out that is about to be removed (P1). Throws bad_alloc, and changes nothing.
  void remove(const Node& node) { radix_.remove(node); }

  /// Fills it after a restart: calls add_some(position) until it returns false, each time with
  /// where it is to go on, which it moves. Ends early if it is told to stop, or there is no room.
  template <class Position, class AddSome>
  void fill(const std::stop_token& stop, AddSome add_some) {
    for (Position position{}; filling() && !stop.stop_requested();) {
      if (add_some(position)) continue;
      set_complete();
      return;
    }
  }

  /// How many of all nodes of the level it lacks though it is complete (P2), and how many it has
  /// that are none of them (P1). Writers are idle.
  struct Faults {
    std::size_t lacking = 0;
    std::size_t foreign = 0;
  };
  Faults faults(const std::unordered_set<const Node*>& all) const {
    Faults faults;
    std::size_t known = 0;
    radix_.for_each([&](const Node* node) {
      ++(all.contains(node) ? known : faults.foreign);
      return true;
    });
    if (complete()) faults.lacking = all.size() - known;
    return faults;
  }

  /// DRAM that it takes.
  std::uint64_t bytes() const { return sizeof *this + arena_.bytes_in_use(); }

 private:
  /// Whether the arena, as it grows, stays within the budget. Beyond the first block of memory it
  /// takes whole ones, and one more as soon as that is needed.
  bool has_room() const {
    constexpr std::uint64_t kBlock = std::uint64_t{2} << 20, kSlab = std::uint64_t{64} << 10;
    if (budget_ == kUnlimited) return true;
    const std::uint64_t next = arena_.bytes_reserved() + std::min(budget_ / 8, kSlab);
    return next <= (budget_ < kBlock ? budget_ : budget_ / kBlock * kBlock);
  }

  enum class State : std::uint8_t {
    filling,   ///< nodes of before the opening may be missing
    complete,  ///< P2
    lacking,   ///< there was no room for a node; for good
  };

  util::Arena arena_;
  // Before the arena is destroyed, all retired memory must have returned to it.
  epoch::DrainFirst drain_;
  Radix radix_;
  const std::uint64_t budget_;
  std::atomic<State> state_{State::filling};
};

}  // namespace perdix::detail::index
