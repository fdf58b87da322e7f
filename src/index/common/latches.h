// The locks of an index's nodes: in DRAM, so that no crash can leave one locked. Nodes share them,
// many nodes to a lock, by a hash of their position.
//
// Rules that exclude deadlock: a thread that waits for a latch holds none. Further latches are only
// tried (LatchesHeld::try_add), and a thread that can't get one gives up; or all are locked
// together, in the order of their addresses (LatchesHeld::lock_all). Under latches a thread may
// take a session of the allocator, never the reverse. Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "epoch/version_lock.h"
#include "pm/offset.h"
#include "util/stripe.h"

namespace perdix::detail::index {

using Latch = epoch::VersionLock;

class Latches {
 public:
  static constexpr unsigned kBits = 10;

  /// 2^bits latches, a line each.
  explicit Latches(unsigned bits)
      : shift_(64 - bits), latches_(std::make_unique<Line[]>(std::size_t{1} << bits)) {}

  Latch& of(pm::Offset node) const { return latches_[index_of(node)].latch; }

  /// The number of a node's latch, below count().
  std::size_t index_of(pm::Offset node) const { return index_of(node, bits()); }

  /// The number of a node among 2^bits. With more bits than the latches have, nodes of one number
  /// share a latch.
  static std::size_t index_of(pm::Offset node, unsigned bits) {
    // Nodes are a multiple of their size apart, so all bits must take part: Fibonacci hashing.
    return node * 0x9e3779b97f4a7c15 >> (64 - bits);
  }

  unsigned bits() const { return 64 - shift_; }
  std::size_t count() const { return std::size_t{1} << bits(); }
  std::size_t bytes() const { return sizeof(Line) * count(); }

 private:
  struct alignas(util::kCacheLine) Line {
    Latch latch;
  };

  const unsigned shift_;
  std::unique_ptr<Line[]> latches_;
};

/// Latches that a thread holds, at most kMaxLatches; releases them on destruction. Nodes that share
/// a latch need it once.
template <std::size_t kMaxLatches>
class LatchesHeld {
 public:
  LatchesHeld() = default;
  LatchesHeld(const LatchesHeld&) = delete;
  LatchesHeld& operator=(const LatchesHeld&) = delete;
  ~LatchesHeld() { release(); }

  /// Takes over a latch that is held.
  void add_held(Latch& latch) { latches_[size_++] = &latch; }

  /// False if another thread has it.
  bool try_add(Latch& latch) {
    for (std::size_t i = 0; i < size_; ++i) {
      if (latches_[i] == &latch) return true;
    }
    if (!latch.try_lock()) return false;
    add_held(latch);
    return true;
  }

  /// False if the latch has changed since it had that version, or another thread has it.
  bool try_upgrade(Latch& latch, Latch::Version version) {
    for (std::size_t i = 0; i < size_; ++i) {
      if (latches_[i] == &latch) return latch.taken_at(version);
    }
    if (!latch.try_upgrade(version)) return false;
    add_held(latch);
    return true;
  }

  /// Locks all of these, while it holds none. Puts them in order.
  void lock_all(std::span<Latch*> latches) {
    assert(size_ == 0);
    std::sort(latches.begin(), latches.end(), std::less<>());
    for (Latch* latch : latches) {
      if (size_ > 0 && latches_[size_ - 1] == latch) continue;
      latch->lock();
      add_held(*latch);
    }
  }

  void release() {
    while (size_ > 0) latches_[--size_]->unlock();
  }

 private:
  std::array<Latch*, kMaxLatches> latches_;  // the first size_
  std::size_t size_ = 0;
};

/// FAST&FAIR: a parent and three of its children; or a leaf, the one before it, their parent and a
/// new root.
using LatchSet = LatchesHeld<4>;

}  // namespace perdix::detail::index
