// All leaves come back after an opening, in the background or where a call needs all of them; and
// when they are back, what a crash has left named in the ledger for operations is freed.
//
// Invariants:
//   1. Once done(), no leaf is cold, and none becomes so.
//   2. The ledger's unresolved blocks are resolved once, by one thread, after a grace period that
//   began when no leaf was cold: so no thread is late in making a leaf warm, which says what it
//   reaches.
//
// Thread-safe. Its thread uses all that it refers to: it goes before that.
#pragma once

#include <mutex>
#include <stop_token>

#include "index/common/resumption.h"
#include "index/nbtree/cold_leaves.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/locator.h"
#include "index/nbtree/top.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::nbtree {

template <class K>
class Resumer {
 public:
  Resumer(pool::PoolCore& pool, Ledger& ledger, Top<K>& top, ColdLeaves<K>& cold,
          Locator<K>& locator)
      : pool_(pool), ledger_(ledger), top_(top), cold_(cold), locator_(locator) {}

  void start(bool in_background);
  void require_resumed();
  bool free_unresolved();

  /// Ends the thread. To be called before what it refers to changes for the last time.
  void stop() { resumption_.stop(); }

  bool done() const { return resumption_.done(); }

  /// From the opening until it was done; 0 before.
  double seconds() const { return resumption_.seconds(); }

 private:
  void resume(const std::stop_token& stop);
  void resolve_blocks();

  pool::PoolCore& pool() const { return pool_; }

  pool::PoolCore& pool_;
  Ledger& ledger_;
  Top<K>& top_;
  ColdLeaves<K>& cold_;
  Locator<K>& locator_;
  std::mutex resolving_;
  bool resolved_ = false;  // the ledger's unresolved blocks; guarded by resolving_
  Resumption resumption_;
};

}  // namespace perdix::detail::index::nbtree
