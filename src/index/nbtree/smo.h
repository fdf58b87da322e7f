// Structure modifications (NBTree (docs/papers.md), section IV-B): a full leaf is replaced by one
// or two leaves, a sparse leaf is joined with its left neighbour. There are three phases. A thread
// that needs the leaf can repeat the first and continue the second:
//
//   1. Freeze and copy. A writer prepares: it allocates, closes the leaf, freezes each entry, and
//      copies the entries that count into new blocks. Several writers may prepare; replace_by() of
//      the leaf takes the SMO of one of them.
//   2. Link. The anchor's `block` changes from the old block to the new one and is persisted: the
//      commit. Then the position gets the new leaf.
//   3. Finish. The writer whose SMO was taken tells the top layer, and frees the old blocks.
//
// The paper copies while updates and erases continue and then synchronises what they changed, for
// which it needs two bits of each value. Here an entry is frozen by a bit of its key word. An
// update of a frozen entry fails and is repeated in the new leaf, so there is nothing to
// synchronise
// ("sync-on-write"). Readers read the old leaf until the new one is linked ("sync-on-read"). An
// update is delayed by no more than the copying that it helps with.
//
// Joining: the right leaf of two is marked to be absorbed, and frozen. The next modification of its
// left neighbour copies its entries, too. A thread that needs the right leaf makes that
// modification.
//
// Invariants: docs/durability/nbtree.md, and leaf.h (4, 5).
//
// Thread-safe. The caller holds a guard. What throws out_of_space or std::bad_alloc has changed no
// pair, but the leaf may be closed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "index/nbtree/cold_leaves.h"
#include "index/nbtree/entry_protocol.h"
#include "index/nbtree/leaf.h"
#include "index/nbtree/leaf_memory.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/reserve.h"
#include "index/nbtree/top.h"
#include "index/nbtree/top_writer.h"

namespace perdix::detail::index::nbtree {

/// Two neighbours are joined if they have no more pairs than this together (joins.h).
inline constexpr unsigned kJoinUpTo = 24;

template <class K>
class Structure {
 public:
  using Key = View<K>;

  Structure(pool::PoolCore& pool, const EntryProtocol<K>& entries, LeafMemory<K>& memory,
            TopLayer<K>& top, TopWriter<K>& writer, Ledger& ledger, Reserve& reserve,
            ColdLeaves<K>& cold, Counts& counts)
      : pool_(pool),
        entries_(entries),
        keys_(entries.keys()),
        memory_(memory),
        top_(top),
        writer_(writer),
        ledger_(ledger),
        reserve_(reserve),
        cold_(cold),
        counts_(counts) {}

  /// Replaces a leaf that is full or closed, or completes its replacement. Returns when the leaf is
  /// no longer at its position. `key`: the key to make room for, if not null.
  void replace_leaf(const LeafRef<K>& place, const Key* key);

  /// The left neighbour of a position; nullopt if the position is no longer in the list.
  std::optional<LeafRef<K>> left_neighbour(const Position<K>& at);

  /// Joins two neighbours. Returns false, and has changed no leaf, if one of them is being replaced
  /// or absorbed.
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
  TopLayer<K>& top_;
  TopWriter<K>& writer_;
  Ledger& ledger_;
  Reserve& reserve_;
  ColdLeaves<K>& cold_;
  Counts& counts_;
};

}  // namespace perdix::detail::index::nbtree
