// The low bounds of an engine's leaves, in PM: a FAST&FAIR tree that leads from them to the leaves.
// After a restart the engine finds a leaf near the one that it needs, with nothing in DRAM and
// without following its list (sptree paper, section 4.1).
//
// It has one leaf of `kOneOf`: the others are a few steps away along the list, and each entry costs
// a write to another tree during a split. A hash selects the leaves, so that a leaf is treated the
// same each time it is met, and no order of splits makes a long row of leaves without an entry.
//
// Each engine says how far it may lag behind the list, and whether it may have leaves that are
// gone. Thread-safe.
#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include <perdix/error.h>
#include <perdix/types.h>

#include "index/common/value_codec.h"
#include "pool/pool_core.h"
#include "util/hash.h"

namespace perdix::detail::index {

template <Storable K, class FairTree, unsigned kOneOf>
class Backup {
 public:
  using Tree = FairTree;  ///< from keys to integers
  using Entry = std::pair<K, pm::Offset>;

  /// Opens the backup below the word, or makes it. Cost: looks at one node. `fanout`: of the tree.
  Backup(pool::PoolCore& pool, pm::Offset& root, unsigned fanout)
      : tree_(pool, root, fanout, kLatchBits) {}

  /// Whether it is one of those leaves that the backup has.
  static bool has(pm::Offset leaf) { return util::hash(leaf) % kOneOf == 0; }

  /// Adds a leaf that is in the list and can't be unlinked during the call, if it is one of those
  /// that the backup has. Nothing happens if it is there already, or if there is no space for it:
  /// then the backup lags behind.
  void add(View<K> low, pm::Offset leaf) {
    if (has(leaf)) unless_full([&] { tree_.insert_at_once(low, NewValue(leaf)); });
  }

  /// As add(), but what it has for the bound becomes this leaf.
  void set(View<K> low, pm::Offset leaf) {
    if (!has(leaf)) return;
    unless_full([&] {
      if (!tree_.insert_at_once(low, NewValue(leaf)) && tree_.get(low) != leaf)
        tree_.update(low, leaf);
    });
  }

  /// Takes a bound out, durably. False, and it may still be there, if that takes space that isn't
  /// there.
  bool remove(View<K> low) {
    return unless_full([&] { tree_.erase(low); });
  }

  /// As remove(), if the leaf is one of those that the backup has.
  bool remove(View<K> low, pm::Offset leaf) { return !has(leaf) || remove(low); }

  /// The last low bound in the backup that is at or below the key, or only below it, and the leaf
  /// there; nothing if there is none. Throws corrupt.
  std::optional<Entry> last(View<K> key, bool strictly_below) const {
    return strictly_below ? tree_.find_below(key) : tree_.find_floor(key);
  }

  /// How many leaves there may be in the list, as far as the backup can tell.
  static std::uint64_t leaves(const IndexStats& stats) { return stats.pairs * kOneOf + 1; }

  /// Cost: visits the whole backup, less than 1 % of the index.
  IndexStats stats() const { return tree_.stats(); }

  const Tree& tree() const { return tree_; }

 private:
  template <class Change>
  static bool unless_full(Change change) {
    try {
      change();
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space) throw;
      return false;
    }
  }

  static constexpr unsigned kLatchBits = 6;  ///< for a hundredth of the writes

  Tree tree_;
};

}  // namespace perdix::detail::index
