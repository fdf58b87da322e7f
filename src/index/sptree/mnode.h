// A middle node ("Mnode", sptree.txt §4.1): the DRAM side of one leaf, in two cache lines.
//
// Invariants while the lock is free:
//   M1. `low`, `leaf()` never change. `high` ends the range where the successor's begins. `next` is
//       the successor's node, or nullptr: the leaf is the last one, or its successor is cold, which
//       is to say that it has no middle node since the index was opened (resume.cc).
//   M2. `bitmap` equals the leaf's, without the slots that the node's write buffer has erased (B3).
//       For each of its bits, fingerprints[i] and the filter belong to pairs[i].key. The filter
//       also has the keys in the buffer.
//   M3. A node whose lock is marked obsolete was merged into its left neighbour and is no longer
//       reachable; its memory stays until no epoch::Guard can hold it.
// Written by the holder of the lock only. Readers are optimistic: lock.read_begin(), read,
// lock.read_validate().
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>

#include "epoch/version_lock.h"
#include "index/sptree/bound.h"
#include "index/sptree/filter.h"
#include "index/sptree/layout.h"
#include "pm/access.h"
#include "util/line.h"

namespace perdix::index::sptree {

/// A leaf's address and the number of a write buffer in one word, for which a node has no more
/// room.
class LeafAndBuffer {
 public:
  static constexpr unsigned kBufferBits = 22;

  explicit LeafAndBuffer(Leaf* leaf) : word_(reinterpret_cast<std::uintptr_t>(leaf) / kUnit) {
    assert(this->leaf() == leaf);
  }

  Leaf* leaf() const {
    return reinterpret_cast<Leaf*>((load() & kLeafMask) * kUnit);  // the user's half of addresses
  }
  std::uint32_t buffer() const { return static_cast<std::uint32_t>(load() >> kLeafBits); }
  void set_buffer(std::uint32_t number) {
    assert(number >> kBufferBits == 0);
    const std::uint64_t buffer = number;
    // release: who finds the number finds the buffer.
    word_.store((load() & kLeafMask) | buffer << kLeafBits, std::memory_order_release);
  }

 private:
  static constexpr std::uintptr_t kUnit = kLeafAlignment;
  static constexpr unsigned kLeafBits = 64 - kBufferBits;
  static constexpr std::uint64_t kLeafMask = (std::uint64_t{1} << kLeafBits) - 1;

  std::uint64_t load() const { return word_.load(std::memory_order_acquire); }

  std::atomic<std::uint64_t> word_;
};

template <Storable K>
struct alignas(64) Mnode {
  using Low = typename Bounds<K>::Low;
  using High = typename Bounds<K>::High;

  Mnode(Leaf* the_leaf, Low the_low, High the_high)
      : home(the_leaf), low(the_low), high(the_high) {}

  // The first line: whether the key can be here, and where the next one is.
  epoch::VersionLock lock;
  LeafAndBuffer home;
  const Low low;
  std::atomic<High> high;
  std::atomic<Mnode*> next{nullptr};
  std::atomic<std::uint64_t> bitmap{0};
  Bloom bloom;
  // The second line: in which slots it can be.
  alignas(64) std::array<std::uint8_t, kLeafPairs> fingerprints{};

  Leaf* leaf() const { return home.leaf(); }
  std::uint32_t buffer() const { return home.buffer(); }  ///< BufferPool's number; 0: none

  // relaxed below: readers validate the version, writers hold the lock.
  std::uint64_t slots() const { return bitmap.load(std::memory_order_relaxed); }
  unsigned count() const { return static_cast<unsigned>(std::popcount(slots())); }
  bool covers(View<K> key) const {
    return Bounds<K>::covers(high.load(std::memory_order_acquire), key);
  }

  /// Slots whose key may have this hash. No PM is read. Without a branch: a wrong guess at the
  /// filter's answer would keep the processor from beginning the caller's next lookup meanwhile.
  std::uint64_t candidates(Hash16 hash) const {
    const std::uint64_t alike =
        util::equal_bytes(util::load_line(fingerprints.data()), fingerprint(hash));
    return alike & slots() & bloom.slots(hash) & bloom.pass_mask(hash);
  }

  /// Records that `slot` holds a key with this hash; its bit in the leaf is set already.
  void add(unsigned slot, Hash16 hash) {
    fingerprints[slot] = fingerprint(hash);
    bloom.add(hash, slot);
    bitmap.store(slots() | std::uint64_t{1} << slot, std::memory_order_relaxed);
  }
};

static_assert(sizeof(Mnode<std::uint64_t>) == 128 && sizeof(Mnode<std::string>) == 128);

}  // namespace perdix::index::sptree
