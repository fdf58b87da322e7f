// The pairs of a leaf in the order of their keys, for ordered iteration, which the paper has not. A
// leaf's entries are unsorted; a scan keeps their order in DRAM for the next one
// (common/scan_orders.h). Its stamp is the set of visible slots: a slot keeps its key for as long
// as it is visible and not dead. Writers carry the order over (leaf_memory.h).
//
// Each pair that is shown was there at a moment while its leaf was read, and each key that is
// passed over was not: as for a lookup, see durability/nbtree.md. Nothing is shown before it is
// durable.
//
// Thread-safe. The caller holds a guard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "index/common/batch.h"
#include "index/common/last_pairs.h"
#include "index/common/scan_orders.h"
#include "index/nbtree/entry_protocol.h"
#include "index/nbtree/leaf.h"
#include "index/nbtree/leaf_memory.h"

namespace perdix::detail::index::nbtree {

template <class K>
class LeafScanner {
 public:
  using Key = View<K>;

  LeafScanner(const EntryProtocol<K>& entries, LeafMemory<K>& memory)
      : entries_(entries), keys_(entries.keys()), memory_(memory) {}

  /// Slots of a leaf in the order of their keys.
  struct Order {
    std::uint64_t visible = 0;  ///< slots that were when it was made
    bool kept = false;          ///< the leaf has it already
    bool to_keep = false;       ///< it is new, of a leaf that shows no damage, or was settled
    Places places;              ///< without those that were dead then
  };

  /// The pairs of some leaves.
  using ScanBatch = Batch<K, (Codec<K>::kInline ? 4 : 2) * (kCapacity + 1)>;
  bool collect(const LeafRef<K>& place, Key from, std::size_t limit, Order& order,
               ScanBatch& into) const;

  /// The last keys that are at or below `bound`, or only below it, of the leaf of `position`.
  struct Target {
    Key position;
    Key bound;
    bool strictly;

    bool reaches(Key key) const { return strictly ? key < bound : !(bound < key); }
  };
  bool collect_last(const LeafRef<K>& place, const Target& target, Order& order,
                    LastPairs& last) const;

  /// Keeps an order that was made anew.
  void keep(const Leaf<K>& leaf, const Order& order) {
    if (order.to_keep)
      memory_.orders().keep_order(memory_.number_of(leaf), order.visible, order.places);
  }

  /// Whether the leaf has an order that counts.
  bool has_order(const Leaf<K>& leaf) const {
    Places places;
    return memory_.orders().read(memory_.number_of(leaf), leaf.visible_slots(), places);
  }

  bool order_sound(const Leaf<K>& leaf, Key low) const;
  void prefetch_order(const Leaf<K>& leaf) const {
    memory_.orders().prefetch(memory_.number_of(leaf));
  }

 private:
  using Layout = EntryLayout<K>;

  unsigned sort_and_find(const LeafRef<K>& place, Key from, Order& order) const;
  std::optional<unsigned> first_from(const Leaf<K>& leaf, const Places& places, Key from) const;
  bool settle(const Leaf<K>& leaf, Key low, Places& places) const;
  bool sort_slots(const Leaf<K>& leaf, Key low, Order& order) const;
  void prefetch_entries(const Leaf<K>& leaf) const;
  void prefetch_next(const Leaf<K>& next) const;

  const EntryProtocol<K>& entries_;
  Codec<K> keys_;
  LeafMemory<K>& memory_;
};

}  // namespace perdix::detail::index::nbtree
