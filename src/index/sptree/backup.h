// The backup of the top layer in PM (sptree paper, §4.1): a FAST&FAIR tree from the low bounds of
// leaves to their offsets. Only the resumer asks it, for a leaf near the one that it needs.
//
// It may lag behind the list of leaves, never ahead of it (L8): a leaf gets its entry after it was
// linked, and loses it before it is unlinked. A thread that finds a leaf to the left of the one
// that it needs continues along the list.
//
// It has one leaf of four: the others are a few steps away along the list, and each entry costs a
// write to another tree during a split. A hash selects the leaves, so that a leaf is treated the
// same each time it is met, and no order of splits makes a long row of leaves without an entry.
//
// Leaves that splits make come here by backup_queue.h, in the background; leaves that a restart
// finds missing, as they come back (resumer.h). The entry of a leaf that is merged away is removed
// immediately: an entry that outlived its leaf would lead a restart to memory that was reused.
// Thread-safe.
#pragma once

#include <cstdint>
#include <new>
#include <optional>

#include <perdix/error.h>

#include "index/fastfair/fastfair.h"
#include "pool/pool_core.h"
#include "util/hash.h"

namespace perdix::detail::index::sptree {

template <Storable K>
class Backup {
 public:
  using Tree = fastfair::Tree<K, std::uint64_t>;

  /// Opens the backup below the word, or makes it. Cost: looks at one node.
  Backup(pool::PoolCore& pool, pm::Offset& root)
      : tree_(pool, root, fastfair::kCapacity, kLatchBits) {}

  /// Whether it is one of those leaves that the backup has.
  static bool has(pm::Offset leaf) { return util::hash(leaf) % kOneOf == 0; }

  /// Adds a leaf that is in the list and can't be unlinked during the call, if it is one of those
  /// that the backup has. Nothing happens if it is there already, or if there is no space for it:
  /// then the backup lags behind.
  void add(View<K> low, pm::Offset leaf) {
    if (has(leaf)) unless_full([&] { tree_.insert_at_once(low, NewValue(leaf)); });
  }

  /// Takes a leaf out, durably, if it is one of those that the backup has. False, and it may still
  /// be there, if that takes space that isn't there.
  bool remove(View<K> low, pm::Offset leaf) {
    return !has(leaf) || unless_full([&] { tree_.erase(low); });
  }

  /// The last leaf in the backup whose low bound is at or below the key, or only below it; nothing
  /// if there is none. Throws corrupt.
  std::optional<pm::Offset> last(View<K> key, bool strictly_below) const {
    const auto found = strictly_below ? tree_.find_below(key) : tree_.find_floor(key);
    if (!found) return std::nullopt;
    return found->second;
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

  static constexpr unsigned kOneOf = 4;
  static constexpr unsigned kLatchBits = 6;  ///< for a hundredth of the writes

  Tree tree_;
};

}  // namespace perdix::detail::index::sptree
