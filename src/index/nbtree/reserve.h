// Blocks that are put aside for a full pool: one for a small leaf and one for a large one. There
// erased entries must make room for others, emptied leaves must be joined, and a leaf that is
// closed must come open again. Each of these replaces a leaf, before the old one is free.
//
// Invariants:
//   1. Each block is the claim of a StripeLease of the ledger, so a crash frees it.
//   2. The holds belong to the thread that has the lock. No thread waits for the lock long.
//
// Thread-safe. No caller has another StripeLease for a modification.
#pragma once

#include <array>
#include <mutex>
#include <optional>

#include "index/nbtree/ledger.h"
#include "pool/pool_core.h"
#include "util/spin_lock.h"

namespace perdix::detail::index::nbtree {

class Reserve {
 public:
  using Lock = std::unique_lock<util::SpinLock>;

  Reserve(pool::PoolCore& pool, Ledger& ledger) : pool_(pool), ledger_(ledger) {}
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

  /// Puts blocks aside, where there are none; does nothing if another thread has the lock.
  void fill();

  /// Frees what is put aside, until the next fill().
  void give_up();

  /// The blocks for the caller alone. Throws out_of_space if another thread does not come to an end
  /// with them.
  Lock lock();

  /// The claim of the smallest block in which `pairs` fit. The caller has the lock. Throws
  /// out_of_space if there is none.
  Ledger::StripeLease& claim_for(unsigned pairs);

  /// The capacity of the largest leaf for which there is room in a block.
  unsigned capacity_at(pm::Offset block) const;

  /// Frees what was unlinked, also by the holders of these blocks. Returns whether that was
  /// anything.
  bool free_garbage();

  /// Frees pages of the ledger that it does not need. Returns whether there were any.
  bool free_pages();

 private:
  void fill_locked();
  bool put_aside(std::optional<Ledger::StripeLease>& lease, unsigned capacity);
  std::array<Ledger::StripeLease*, 2> own();

  pool::PoolCore& pool_;
  Ledger& ledger_;
  util::SpinLock lock_;
  std::array<std::optional<Ledger::StripeLease>, 2> leases_;  // of a small block, of a larger one
};

}  // namespace perdix::detail::index::nbtree
