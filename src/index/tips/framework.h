// What an index has besides the plugged-in one: its logs in PM and its reserve, and the steps that
// more than one of them takes part in (docs/durability/tips.md, D4 to D6).
//
// Invariants:
//   1. A record of an operational log is given up by reclaim() only, when what it says is durable
//      in the index.
//   2. The undo log and the memory log are emptied in the same step, so after a crash the index is
//      either taken back to the state before all of their operations, or has all of them.
//
// uno, logs and reserve are thread-safe as they say. The calls of this class need that no operation
// of the plug-in runs, and that no other thread makes one of them.
#pragma once

#include <cstdint>

#include "index/common/owned.h"
#include "index/tips/layout.h"
#include "index/tips/operation_log.h"
#include "index/tips/reserve.h"
#include "index/tips/uno.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

class Framework {
 public:
  /// `root` leads to the header. Checks the blocks of all parts. Throws corrupt.
  Framework(pool::PoolCore& pool, std::uint64_t& root, Header& header);

  Reserve reserve;
  Uno uno;
  OperationLogs logs;

  /// On opening, before anything of the index is read: takes back the operations since the last
  /// reclamation, or finishes that if its flush had ended. Throws corrupt, out_of_space.
  void roll_back_or_finish();

  /// Makes the changes of the index durable, then empties the undo log and the memory log, and
  /// drops the records up to this number. All of them are in the index.
  void reclaim(std::uint64_t replayed_to);

  epoch::Reclaimer& reclaimer() const { return pool_.reclaimer(); }

  /// The number up to which records mean nothing.
  std::uint64_t reclaimed() const { return pm::load(header_.reclaimed); }

  /// Reclamations since the opening.
  std::uint64_t reclamations() const { return reclamations_; }

  /// Waits until what reclamations have freed can be allocated again.
  void take_freed_back() { pool_.allocator().reclaim(); }

  /// Gives back the space that is kept for later writes, as Reserve has it. After a reclamation.
  void release_spare(const Need& alike);

  /// Tells of all of it, and of the header with the plug-in's object. What the plugged-in index
  /// leads to is no part of it: only the plug-in finds that (guest.inspect()), and only by its own
  /// erase an index with fewer pairs is sound at each crash.
  void walk(Owned& owned) const;

 private:
  void finish_reclamation();

  pool::PoolCore& pool_;
  std::uint64_t& root_;
  Header& header_;
  std::uint64_t reclamations_ = 0;
};

}  // namespace perdix::detail::index::tips
