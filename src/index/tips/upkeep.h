// When the logs are replayed and reclaimed, and by which thread: by a call that needs the index up
// to date, by a writer that finds a log full, by the pool's background thread, on opening by the
// thread of the inspection, and at the end.
//
// Invariant: one thread at a time replays, and it holds the lock of alone() meanwhile. This is the
// first of the locks of an index: then come a bucket's, a ring's, Uno's, the reserve's. A writer
// that has a bucket or a ring never waits for a replay. Lookups take none but those of the plug-in.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "index/tips/cache.h"
#include "index/tips/changes.h"
#include "index/tips/framework.h"
#include "index/tips/inspection.h"
#include "index/tips/replayer.h"
#include "index/tips/settings.h"
#include "pool/background.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

class Upkeep {
 public:
  /// Recovers the writes of the logs, makes the first log, and begins with the work in the
  /// background. Throws corrupt, out_of_space, bad_alloc.
  Upkeep(pool::PoolCore& pool, Framework& framework, Inspection& inspection, Changes& changes,
         Cache& cache, const Settings& settings);
  ~Upkeep();  ///< replays what is left, if it can
  Upkeep(const Upkeep&) = delete;
  Upkeep& operator=(const Upkeep&) = delete;

  bool is_out_of_space() const { return replayer_.is_out_of_space(); }

  /// The writes that are not in the index.
  const Waiting& waiting() const { return replayer_.waiting(); }

  /// Inspects the index, unless that was done.
  void inspect();

  /// Replays the writes made before the call, unless that was done.
  void catch_up();

  /// Replays, then reclaims: that makes room in the logs, and frees what plug-ins have given back.
  void make_room();

  /// As Replayer has it.
  void settle();

  /// After a write: asks the background thread for a replay. Where a probe stops that thread, the
  /// writer itself replays now and then. An error of the replay is dropped, since the write has
  /// happened: the next call that needs a replay meets the error, too.
  void after_write() noexcept;

  /// Calls use(replayer) while no other thread replays.
  template <class Use>
  auto alone(const Use& use) {
    const std::lock_guard lock(replaying_);
    return use(replayer_);
  }

 private:
  void start_inspection() noexcept;
  void replay_in_background() noexcept;
  void replay_some();

  OperationLogs& logs_;
  Inspection& inspection_;
  const bool resumes_;  // in the background

  std::mutex replaying_;
  Replayer replayer_;  // changed with the lock

  std::atomic<bool> requested_{false};  // of the job
  std::optional<pool::Background::Job> job_;
};

}  // namespace perdix::detail::index::tips
