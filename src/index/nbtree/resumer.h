// Makes all leaves warm after an opening, in the background or where a call needs all of them. When
// all are warm, it frees what a crash has left named in the ledger and the index does not reach,
// and sees to it that the ledger knows its free places of anchors and that no signpost is stale.
//
// Invariants:
//   1. Once done(), no leaf is cold, and none becomes so.
//   2. The ledger's unresolved blocks are resolved once, by one thread, after a grace period that
//   began when no leaf was cold. So no thread is still making a leaf warm, which is how the ledger
//   learns what the leaf reaches.
//
// Thread-safe. Its thread uses all parts that it refers to, so it is destroyed before them.
#pragma once

#include <mutex>
#include <stop_token>

#include "index/common/resumption.h"
#include "index/nbtree/cold_leaves.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/locator.h"
#include "index/nbtree/reserve.h"
#include "index/nbtree/signposts.h"
#include "index/nbtree/top_writer.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::nbtree {

template <class K>
class Resumer {
 public:
  Resumer(pool::PoolCore& pool, Ledger& ledger, Reserve& reserve, Signposts<K>& signposts,
          TopWriter<K>& writer, ColdLeaves<K>& cold, Locator<K>& locator)
      : pool_(pool),
        ledger_(ledger),
        reserve_(reserve),
        signposts_(signposts),
        writer_(writer),
        cold_(cold),
        locator_(locator) {}

  /// Starts the thread, if `in_background`. Makes all leaves warm itself if a crash has left so
  /// many stripes of the ledger with claims that operations or modifications would lack some.
  void start(bool in_background);

  /// Returns when all leaves are warm and what the ledger named is resolved. Waits for the
  /// background, which would only be slower if it shared the work.
  void require_resumed();

  /// For a full pool: frees what a crash has left named. Returns false if there is nothing of that
  /// kind.
  bool free_unresolved();

  /// Ends the thread. Called before the parts to which this refers are taken down.
  void stop() { resumption_.stop(); }

  /// Whether no leaf is cold.
  bool done() const { return resumption_.done(); }

  /// From the opening until it was done; 0 before.
  double seconds() const { return resumption_.seconds(); }

 private:
  void resume(const std::stop_token& stop);
  void resolve_blocks();
  bool has_unresolved() const {
    return ledger_.has_unresolved(Ledger::Purpose::operation) ||
           ledger_.has_unresolved(Ledger::Purpose::modification);
  }

  pool::PoolCore& pool_;
  Ledger& ledger_;
  Reserve& reserve_;
  Signposts<K>& signposts_;
  TopWriter<K>& writer_;
  ColdLeaves<K>& cold_;
  Locator<K>& locator_;
  std::mutex resolving_;
  bool resolved_ = false;  // the ledger's unresolved blocks; guarded by resolving_
  Resumption resumption_;
};

}  // namespace perdix::detail::index::nbtree
