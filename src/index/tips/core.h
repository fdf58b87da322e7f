// Tips (Krishnan et al., USENIX ATC 2021): makes a volatile index durable. Keys and values are
// bytes here; map.h has the types. A Core puts the parts together, each with its invariants:
//
//   recovery.h       creation, and what an opening requires
//   guest.h          the plugged-in index; words.h: what it maps
//   framework.h      what there is besides it, recovered and reclaimed together:
//     uno.h            undo log and memory log, which undo an unfinished replay
//     operation_log.h  the operational logs: a write is durable when its record is
//     reserve.h        space for the replay of what is logged
//   inspection.h     lookups in the index, which doubt it until it was inspected
//   changes.h        changes of the index, which a crash takes back as a whole
//   cache.h          the DRAM-cache: newest writes, found first
//   waiting.h          what is not in the index yet, for a replay and for scans; queue.h
//   replayer.h         from the logs into the index; workers.h, scaling.h: its threads
//   upkeep.h         when that happens; the lock of it, and the order of all locks
//   writer.h         writes; write_through.h: puts for which there is no reserve
//   check.h          verification; destroy.h: the end
//
// Durability: see docs/durability/tips.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include <perdix/types.h>

#include "epoch/guard.h"
#include "index/tips/attempt.h"
#include "index/tips/cache.h"
#include "index/tips/changes.h"
#include "index/tips/framework.h"
#include "index/tips/guest.h"
#include "index/tips/inspection.h"
#include "index/tips/recovery.h"
#include "index/tips/settings.h"
#include "index/tips/upkeep.h"
#include "index/tips/writer.h"
#include "pool/open_index.h"
#include "pool/pool_core.h"
#include "util/striped_counter.h"

namespace perdix::detail::index::tips {

/// Thread-safe. Calls that count or check the index bring it up to date first, so they change it.
class Core {
 public:
  /// Opens or creates the index below the root.
  Core(pool::PoolCore& pool, std::uint64_t& root, const Plugin& plugin, Kinds kinds,
       const Settings& settings);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Sets or removes the value of a key if decide(found) says so, and removes none where there is
  /// none; a null `decide` does not look. Returns whether it did.
  bool write(Operation operation, std::string_view key, std::string_view value, Decide decide,
             void* context) {
    return writer_.write(operation, key, value, Condition(decide, context));
  }

  /// Calls use(value) in a Guard if the key is there.
  template <class Use>
  bool get(std::string_view key, const Use& use) {
    const epoch::Guard guard;
    const std::uint64_t hash = cache_.hash_of(key);
    if (const Entry* entry = Cache::look_up(cache_.bucket(hash), hash, key)) {
      hits_.add(1);
      if (entry->operation() == Operation::erase) return false;
      use(entry->value());
      return true;
    }
    misses_.add(1);
    return inspection_.find(key, use);
  }

  /// Has the index inspected: then it may be read from end to end.
  void require_inspected() { upkeep_.inspect(); }

  /// The writes that are not in the index. A scan has a View of them before it reads the index.
  const Waiting& waiting() const { return upkeep_.waiting(); }

  /// Brings the index up to date: replays the writes made before the call. After it
  /// for_each_pending() shows what there was no space for.
  void catch_up() {
    upkeep_.catch_up();
    require_whole();
  }

  /// Calls show(entry) for the writes that catch_up() could not replay, in no order: in a full
  /// pool.
  template <class Show>
  void for_each_pending(const Show& show) {
    // What catch_up() has deferred is in the index before this becomes false again.
    if (!upkeep_.is_out_of_space()) return;
    upkeep_.alone([&](const Replayer& replayer) { replayer.for_each_deferred(show); });
  }

  std::uint64_t size();

  /// As OpenIndex has it.
  bool reclaim_space() noexcept;

  IndexStats stats();
  CheckReport check();

  /// Settled, so that the end of the index has nothing left to free: the pool's check compares the
  /// blocks with what is allocated when the index is closed.
  void for_each_block(const pool::BlockVisitor& visit);

  /// The plugged-in index.
  const Guest& index() const { return guest_; }

  /// After a look at the index: throws if half of a change may have been there.
  void require_whole() const { framework_.uno.require_whole(); }

 private:
  Cache::Size recovered(const TipsOptions& options);
  std::int64_t pending_pairs(const Replayer& replayer) const;
  TipsStats tips_stats(const Replayer& replayer) const;

  pool::PoolCore& pool_;
  Header& header_;
  Guest guest_;
  Framework framework_;
  const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  Inspection inspection_;
  Changes changes_;
  Cache cache_;  // of a size that follows from the index, as the rollback has left it
  Upkeep upkeep_;
  Writer writer_;
  util::StripedCounter hits_, misses_;
  const std::chrono::duration<double> recovery_ = std::chrono::steady_clock::now() - opened_;
};

}  // namespace perdix::detail::index::tips
