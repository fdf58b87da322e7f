// Structure modifications (NBTree (docs/papers.md), section IV-B): a leaf that is full is replaced
// by one or two, a sparse one is joined with its left neighbour. In three phases, each of which any
// thread may do again or go on with:
//
//   1. Freeze and copy. A writer prepares: it allocates, closes the leaf, freezes each entry, and
//      copies what there is into new blocks. Several may prepare; `Leaf::smo` takes one.
//   2. Link. The anchor's `block` changes from the old block to the new one and is persisted: the
//      commit. Then the position gets the new leaf.
//   3. Finish. Whose preparation was taken has the top layer brought up to date and the old
//      blocks freed.
//
// The paper copies while updates and erases go on and then synchronises what they changed, for
// which it needs two bits of each value. Here an entry is frozen by a bit that its key word has, an
// update of a frozen entry fails and is made again in the new leaf: so there is nothing to
// synchronise ("sync-on-write"), and readers read the old leaf until the new one is linked
// ("sync-on-read"). An update is delayed by no more than the copying that it helps with.
//
// Joining: the leaf that goes is marked to be absorbed and frozen; the next modification of its
// left neighbour takes its entries along. A thread that needs the leaf makes that change.
//
// Invariants: docs/durability/nbtree.md, and leaf.h (4, 5).
//
// Thread-safe. The caller holds a guard. What throws out_of_space or std::bad_alloc has lost
// nothing; the leaf may be closed then.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "index/nbtree/cold_leaves.h"
#include "index/nbtree/counts.h"
#include "index/nbtree/entry_protocol.h"
#include "index/nbtree/leaf.h"
#include "index/nbtree/leaf_memory.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/metadata_copies.h"
#include "index/nbtree/reserve.h"
#include "index/nbtree/top.h"

namespace perdix::detail::index::nbtree {

/// Two neighbours are joined if they have no more pairs than this together.
inline constexpr unsigned kJoinUpTo = 24;

template <class K>
class Structure {
 public:
  using Key = View<K>;

  Structure(pool::PoolCore& pool, const EntryProtocol<K>& entries, LeafMemory<K>& memory,
            const MetadataCopies& copies, Top<K>& top, Ledger& ledger, Reserve& reserve,
            ColdLeaves<K>& cold, Counts& counts)
      : pool_(pool),
        entries_(entries),
        keys_(entries.keys()),
        memory_(memory),
        copies_(copies),
        top_(top),
        ledger_(ledger),
        reserve_(reserve),
        cold_(cold),
        counts_(counts) {}

  void replace_leaf(const LeafRef<K>& place, const Key* key);
  std::optional<LeafRef<K>> left_neighbour(const Position<K>& at);
  bool join(const LeafRef<K>& left, const LeafRef<K>& right);

 private:
  using Keys = Codec<K>;
  using Layout = EntryLayout<K>;
  using StripeLease = Ledger::StripeLease;

  /// One entry of a leaf that is being replaced.
  struct Item {
    Key key;
    Word key_word;
    Word value;
    unsigned order;
  };

  /// What a structure modification makes of one leaf, or of two neighbours.
  struct SmoPlan {
    std::array<Item, 2 * kCapacity> items;
    unsigned size = 0;
    unsigned gathered = 0;  // the size with those that do not count (N4)
    bool split = false;
    Key separator{};
    unsigned left_capacity = 0;
    unsigned right_capacity = 0;
    Position<K>* absorbed = nullptr;
    Leaf<K>* absorbed_leaf = nullptr;
    std::array<pm::Offset, 4> blocks{};  // left, right, its anchor, the blob of its low bound
    Word low = 0;                        // of the right one
    K bound{};                           // owns the separator, if it is a string

    unsigned kept() const;
    bool fits() const;
  };

  bool try_replace_leaf(const LeafRef<K>& place, const Key* key);
  void gather(const Position<K>& at, const Leaf<K>& leaf, SmoPlan& plan) const;
  void collect_items(const LeafRef<K>& place, SmoPlan& plan) const;
  void make_plan(const LeafRef<K>& place, const Key* key, SmoPlan& plan) const;
  void name_replaced(const LeafRef<K>& place, const SmoPlan& plan, StripeLease& lease);
  void allocate(const LeafRef<K>& place, SmoPlan& plan, StripeLease& lease);
  template <class Change>
  bool with_blocks(const LeafRef<K>& place, const Key* key, SmoPlan& plan, const Change& change);
  bool install(const LeafRef<K>& place, SmoPlan& plan, StripeLease& lease, Smo<K>& mine);
  Smo<K>* prepare(const LeafRef<K>& place, const SmoPlan& plan);
  bool copy(const LeafRef<K>& place, SmoPlan& plan, const Smo<K>& smo);
  void fill(Leaf<K>& leaf, const SmoPlan& plan, unsigned begin, unsigned end);
  void link(const LeafRef<K>& place, const Smo<K>& smo);
  void finish(const LeafRef<K>& place, Smo<K>& smo);
  void discard(Smo<K>& smo);
  void retire(Smo<K>& smo);
  void absorb(const LeafRef<K>& place);

  pool::PoolCore& pool() const { return pool_; }
  const pm::Persister& pm() const { return pool_.pm(); }

  pool::PoolCore& pool_;
  const EntryProtocol<K>& entries_;
  Keys keys_;
  LeafMemory<K>& memory_;
  const MetadataCopies& copies_;
  Top<K>& top_;
  Ledger& ledger_;
  Reserve& reserve_;
  ColdLeaves<K>& cold_;
  Counts& counts_;
};

}  // namespace perdix::detail::index::nbtree
