// The backup of an index (sptree paper, section 4.1), and the leaves on their way there. Only the
// resumer asks the backup, for a leaf near the one that it needs.
//
// The backup may lag behind the list of leaves, never ahead of it (L8): a leaf gets its entry after
// it was linked, and loses it before it is unlinked. A thread that finds a leaf to the left of the
// one that it needs continues along the list.
//
// Leaves that splits make come to the backup by the queue, in the background; leaves that a restart
// finds missing, as they come back (resumer.h). The entry of a leaf that is merged away is removed
// immediately: an entry that outlived its leaf would lead a restart to memory that was reused.
//
// Thread-safe, but for open().
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include "index/common/backup.h"
#include "index/common/backup_queue.h"
#include "index/fastfair/fastfair.h"
#include "index/sptree/mnode.h"
#include "pm/probe.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::sptree {

/// One leaf of four.
template <class K>
using Backup = index::Backup<K, fastfair::Tree<K, std::uint64_t>, 4>;

template <class K>
class LeafBackup {
 public:
  using Node = Mnode<K>;

  /// `back_up(low, leaf)` adds a leaf that was enqueued, unless it has been merged away since. It
  /// is called on any thread, and must not throw.
  LeafBackup(pool::PoolCore& pool, typename BackupQueue<K>::BackUp back_up)
      : pool_(pool), queue_(pool.background(), std::move(back_up)) {}

  /// Opens the backup below the word, or makes it. Once, before all else.
  void open(pm::Offset& root) { backup_.emplace(pool_, root, fastfair::kCapacity); }

  const Backup<K>& operator*() const { return *backup_; }
  const Backup<K>* operator->() const { return &*backup_; }

  /// Adds a leaf that is in the list, and stays there during the call.
  void add(View<K> low, pm::Offset leaf) { backup_->add(low, leaf); }
  void add(const Node& node) { add(Bounds<K>::view(node.low), offset_of(node)); }

  /// Takes out a leaf that is about to be merged away. False if that takes space that isn't there.
  bool remove(const Node& node) {
    return backup_->remove(Bounds<K>::view(node.low), offset_of(node));
  }

  /// Sees to it that a new leaf, whose left neighbour is locked, comes into the backup. Behind the
  /// commit of the split, so it throws nothing.
  void enqueue(const Node& node) noexcept {
    try {
      if (!Backup<K>::has(offset_of(node))) return;
      pm::on_step("sptree: queue a leaf for the backup");
      if (queue_.push(Bounds<K>::view(node.low), offset_of(node))) return;
      add(node);  // the lock keeps it from being merged away
    } catch (const std::exception&) {
      // The backup lags behind. A call that needs the damaged part throws the error itself.
    }
  }

  /// Returns when all that was enqueued before the call is in the backup; helps with it.
  void finish() { queue_.finish(); }

 private:
  pm::Offset offset_of(const Node& node) const { return pool_.offset(node.leaf()); }

  pool::PoolCore& pool_;
  std::optional<Backup<K>> backup_;  // made once the root block is there
  BackupQueue<K> queue_;             // last: its work ends before the backup is destroyed
};

}  // namespace perdix::detail::index::sptree
