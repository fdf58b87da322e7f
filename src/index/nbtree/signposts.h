// Signposts: where a search for a cold leaf begins after an opening. A tree in PM leads from the
// low bounds of anchors to the anchors, for one anchor of sixteen (index/common/backup.h). So an
// opening need not read the anchors, however many there are.
//
// The tree lags behind the list. It may lack an anchor, and it may have one that was joined with
// its left neighbour since, whose place is free or belongs to another leaf. So a signpost is a
// proposal, and ColdLeaves says when it is believed. The anchors in the root have none: they are
// known.
//
// The top layer's writer tells of each position that it adds or removes. In the background the tree
// is then brought up to date with what the top layer has at that bound, whatever has happened there
// meanwhile. So signposts cost no operation more than a place in a queue.
//
// Thread-safe. No search waits for a thread that changes the tree.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include <perdix/error.h>

#include "epoch/guard.h"
#include "index/common/backup.h"
#include "index/common/backup_queue.h"
#include "index/common/neighbour.h"
#include "index/fastfair/fastfair.h"
#include "index/nbtree/leaf.h"
#include "index/nbtree/top.h"
#include "pm/probe.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::nbtree {

template <class K>
class Signposts {
 public:
  using Key = View<K>;
  using Tree = Backup<K, fastfair::Tree<K, std::uint64_t>, 16>;
  using Signpost = typename Tree::Entry;  ///< a low bound, and the offset of an anchor

  /// Opens the tree below the word of the root, or makes it. In a full pool that has none there are
  /// no signposts until the next opening.
  Signposts(pool::PoolCore& pool, const TopLayer<K>& top, pm::Offset& word)
      : pool_(pool),
        top_(top),
        queue_(pool.background(), [this](Key low, pm::Offset) { bring_up_to_date(low); }) {
    try {
      tree_.emplace(pool, word, fastfair::kCapacity);
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space) throw;
    }
  }

  /// The last signpost that is at or below the key, or only below it. None, too, while another
  /// thread changes the tree. Throws corrupt.
  std::optional<Signpost> last(Key key, bool strictly_below) const {
    const std::shared_lock lock(changing_, std::try_to_lock);
    if (!lock || !tree_) return std::nullopt;
    return tree_->last(key, strictly_below);
  }

  /// Sees to it that the tree gets or loses the anchor that begins, or began, at the bound. Does
  /// not throw: without memory the tree lags behind.
  void note(Key low, const Anchor& anchor) noexcept {
    const pm::Offset offset = pool_.offset(&anchor);
    if (!tree_ || !Tree::has(offset)) return;
    pm::on_step("nbtree: queue an anchor for the signposts");
    queue_.push(low, offset);
  }

  /// Takes out what leads nowhere: what a crash has left. All positions are known. Throws corrupt.
  void take_out_stale() {
    constexpr std::size_t kAtOnce = 64;
    std::vector<K> lows;
    for (K from{}; tree_; from = *successor(Key(lows.back()))) {
      lows.clear();
      tree_->tree().read(from, kAtOnce, [&](Key low, std::uint64_t) {
        lows.emplace_back(low);
        return true;
      });
      for (const K& low : lows) bring_up_to_date(low);
      if (lows.size() < kAtOnce || !successor(Key(lows.back()))) return;
    }
  }

  /// Returns when the tree has what was noted before the call; helps with it. The caller holds no
  /// guard.
  void finish() { queue_.finish(); }

  /// Null if there is none.
  const typename Tree::Tree* tree() const { return tree_ ? &tree_->tree() : nullptr; }

 private:
  void bring_up_to_date(Key low) noexcept {
    try {
      const std::lock_guard lock(changing_);
      const epoch::Guard guard;
      const Position<K>* at = top_.floor(low).at;
      pm::on_step("nbtree: bring a signpost up to date");
      // The bound of a position can be read as long as it has a leaf (leaf.h, 6).
      if (at->leaf.load() != nullptr && at->low() == low && Tree::has(pool_.offset(&at->anchor())))
        tree_->set(low, pool_.offset(&at->anchor()));
      else
        tree_->remove(low);
    } catch (const std::exception&) {
      // The tree lags behind. A call that needs the damaged part throws the error itself.
    }
  }

  pool::PoolCore& pool_;
  const TopLayer<K>& top_;
  std::optional<Tree> tree_;            // none: there was no space for it
  mutable std::shared_mutex changing_;  // exclusive: a thread changes the tree
  BackupQueue<K> queue_;                // last: its work ends before the tree is destroyed
};

}  // namespace perdix::detail::index::nbtree
