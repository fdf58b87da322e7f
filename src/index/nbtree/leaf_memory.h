// The memory of leaves, positions and their bounds in DRAM: an arena, in which SMOs and the top
// layer lie, too; the orders that scans keep of leaves; the positions that an index has; and what
// is counted of its leaves.
//
// Invariants:
//   1. A leaf's number is a function of its address, and an order belongs to a number. So the order
//   is forgotten before another leaf can get the memory.
//   2. The bytes of a string bound belong to its position and are released with it. The arena takes
//   all else with it, but long bounds are mappings of their own.
//
// Thread-safe. What is released must be out of reach of all readers. new_leaf(), new_position() and
// own_bound() throw std::bad_alloc.
#pragma once

#include <cstring>
#include <new>

#include "index/common/codec.h"
#include "index/common/scan_orders.h"
#include "index/nbtree/entry_protocol.h"
#include "index/nbtree/leaf.h"
#include "pool/pool_core.h"
#include "util/arena.h"
#include "util/striped_counter.h"

namespace perdix::detail::index::nbtree {

template <class K>
class LeafMemory {
 public:
  using Key = View<K>;

  /// `scan_budget`: bytes for the orders.
  LeafMemory(pool::PoolCore& pool, std::uint64_t scan_budget)
      : pool_(pool), orders_(arena_, pool.reclaimer()) {
    orders_.set_budget(scan_budget);
  }

  util::Arena& arena() { return arena_; }
  const util::Arena& arena() const { return arena_; }

  /// The orders of leaves, by number_of(); a cache that scans fill.
  ScanOrders& orders() { return orders_; }
  ScanOrders::Number number_of(const Leaf<K>& leaf) const {
    return arena_.ref(&leaf) * util::Arena::kGranule / Leaf<K>::bytes(kSmallCapacity);
  }

  /// Carry the order over a change of one slot: it was shown, or hidden. Stamps are the sets of the
  /// slots that are visible, and say all, since no slot gets another key: so it does not matter
  /// which threads have shown or hidden others, and whether they carry the order over before.
  void slot_shown(const Leaf<K>& leaf, unsigned slot) {
    const std::uint64_t now = leaf.visible_slots(), bit = std::uint64_t{1} << slot;
    if ((now & bit) == 0) return;  // erased by now
    orders_.add(number_of(leaf), now - bit, now, static_cast<PlaceInLeaf>(slot));
  }
  void slot_hidden(const Leaf<K>& leaf, unsigned slot) {
    const std::uint64_t now = leaf.visible_slots(), bit = std::uint64_t{1} << slot;
    // A scan leaves out dead entries, so the order may lack it.
    orders_.remove(number_of(leaf), now | bit, now, static_cast<PlaceInLeaf>(slot));
  }

  /// The leaf of a block, before the position `next`, whose low bound is `end`.
  Leaf<K>* new_leaf(pm::Offset block, unsigned capacity, Position<K>* next, Key end) {
    void* memory = arena_.allocate(Leaf<K>::bytes(capacity));
    return new (memory) Leaf<K>(*pool_.at<Block>(block), capacity, next, end);
  }
  Leaf<K>* new_leaf(pm::Offset block, unsigned capacity, Position<K>* next) {
    return new_leaf(block, capacity, next, next == nullptr ? Key{} : next->low());
  }
  Position<K>* new_position(Anchor& anchor, Key low, Leaf<K>* leaf) {
    void* memory = arena_.allocate(sizeof(Position<K>));
    try {
      return new (memory) Position<K>(anchor, own_bound(low), leaf);
    } catch (...) {
      arena_.release(memory, sizeof(Position<K>));
      throw;
    }
  }

  /// A copy of a low bound whose bytes are the position's own (2).
  Key own_bound(Key low) {
    if constexpr (!Codec<K>::kInline) {
      if (low.empty()) return low;
      auto* bytes = static_cast<char*>(arena_.allocate(low.size()));
      std::memcpy(bytes, low.data(), low.size());
      low = {bytes, low.size()};
    }
    return low;
  }

  void release(Leaf<K>* leaf) {
    orders_.forget(number_of(*leaf));  // another leaf may get the memory
    arena_.release(leaf, leaf->bytes());
  }
  void release(Position<K>* position) {
    if constexpr (!Codec<K>::kInline) {
      const Key low = position->low();
      if (!low.empty()) arena_.release(const_cast<char*>(low.data()), low.size());
    }
    arena_.release(position, sizeof *position);
  }

 private:
  pool::PoolCore& pool_;
  util::Arena arena_{util::Arena::kMaxRange};
  ScanOrders orders_;
};

/// Owns the positions that an index has: the first one, and those that `next` leads to from there.
/// No other thread uses them when this ends.
template <class K>
class PositionList {
 public:
  explicit PositionList(LeafMemory<K>& memory) : memory_(memory) {}
  PositionList(const PositionList&) = delete;
  PositionList& operator=(const PositionList&) = delete;
  ~PositionList() {
    for (Position<K>* at = Codec<K>::kInline ? nullptr : first_; at != nullptr;) {
      const Leaf<K>* leaf = at->leaf.load();
      Position<K>* next = is_cold(leaf) ? next_of_cold(leaf) : leaf->next();
      memory_.release(at);
      at = next;
    }
  }

  /// The first one, which is never joined with another one.
  Position<K>* first() const { return first_; }

  /// Adds a position, whose leaf is cold, behind all others. No other thread uses the list. Throws
  /// std::bad_alloc.
  Position<K>& add_cold(Anchor& anchor, View<K> low) {
    Position<K>* at = memory_.new_position(anchor, low, cold_before<K>(nullptr));
    if (last_ == nullptr)
      first_ = at;
    else
      last_->leaf.store(cold_before(at), std::memory_order_relaxed);
    return *(last_ = at);
  }

 private:
  LeafMemory<K>& memory_;
  Position<K>* first_ = nullptr;
  Position<K>* last_ = nullptr;  // of those that were added
};

/// What an index counts of its warm leaves as it changes, so that size() and stats() need not visit
/// them. Thread-safe; a sum is exact while no thread changes the index.
struct Counts {
  util::StripedCounter pairs;
  util::StripedCounter leaves;
  util::StripedCounter small_leaves;  ///< of those
  util::StripedCounter blob_bytes;    ///< of keys, values and low bounds

  template <class K>
  void add_leaf(const Leaf<K>& leaf, int sign) {
    leaves.add(sign);
    if (leaf.capacity() == kSmallCapacity) small_leaves.add(sign);
  }

  /// Those of an entry; value 0: of a key alone.
  template <class K>
  void add_blobs(const EntryProtocol<K>& entries, Word key, Word value, int sign) {
    if (!entries.all_inline()) blob_bytes.add(sign * entries.footprint(key, value));
  }
};

}  // namespace perdix::detail::index::nbtree
