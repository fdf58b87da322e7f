// From the logs into the plugged-in index: what one replay does, and what waits for space after it.
//
//   replayer.recover();   // on opening: writes that were not replayed durably wait again
//   replayer.run();       // all writes made before the call go into the index
//   replayer.reclaim();   // makes room in the logs
//
// Invariants, between the calls:
//   1. The entry of a logged write that is not in the index waits (waiting.h). It is in the cut if
//      it is deferred, since there was no space for it.
//   2. reclaim() gives up no record whose entry is deferred.
//   3. While is_out_of_space() is false, the last run() has deferred nothing.
//
// One thread at a time makes the calls that are not const.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include <perdix/tips.h>

#include "index/tips/cache.h"
#include "index/tips/changes.h"
#include "index/tips/framework.h"
#include "index/tips/inspection.h"
#include "index/tips/scaling.h"
#include "index/tips/waiting.h"
#include "index/tips/workers.h"

namespace perdix::detail::index::tips {

class Replayer {
 public:
  Replayer(Framework& framework, Inspection& inspection, Changes& changes, Cache& cache,
           const TipsOptions& options);
  ~Replayer();  ///< gives up the entries that wait; their records stay
  Replayer(const Replayer&) = delete;
  Replayer& operator=(const Replayer&) = delete;

  /// Shows the writes of the logs in the cache again and defers them. Throws corrupt, bad_alloc.
  void recover();

  /// Replays the writes made before the call, and defers those for which there is no space. Of the
  /// writes of one key in the cut the last one is applied (D2), even if a later write that is not
  /// in the cut has superseded it since: a caller that waits for this replay must see it.
  void run();

  /// Makes the changes of the index durable, and drops the records that are replayed.
  void reclaim() { framework_.reclaim(replayed_to_); }

  /// Calls run() and reclaim() until nothing is left that can be replayed, then gives the space
  /// back that the index keeps for later writes.
  void settle();

  /// Whether nothing was written or replayed since settle(). Then the background thread must not
  /// replay, also if writes wait for space. Each attempt may change the index, as a table that is
  /// being resized moves some pairs, and a check may already have listed the blocks of the index.
  bool is_settled() const;

  bool has_deferred() const { return deferred_ != 0; }

  /// Calls show(entry) for the deferred writes that no later one has superseded, in no order.
  template <class Show>
  void for_each_deferred(const Show& show) const {
    for (const RankedEntry& slot : waiting_.rest())
      if (!slot.entry->is_superseded(cut_to_)) show(*slot.entry);
  }

  /// Sets what a replay counts.
  void count(TipsStats& stats) const;

  // Thread-safe:

  /// The writes that are not in the index.
  const Waiting& waiting() const { return waiting_; }

  /// Whether all writes made before the call are in the index.
  bool is_caught_up() const;

  /// Whether writes wait for space. A thread that reads false finds writes that were deferred
  /// earlier in the index.
  bool is_out_of_space() const { return out_of_space_.load(std::memory_order_acquire); }

  /// Writes since the last replay, about.
  std::uint64_t backlog() const {
    return framework_.logs.last_number() - replay_begun_at_.load(std::memory_order_relaxed);
  }

 private:
  /// The writes of a worker: all at first, then those that it leaves.
  struct Share {
    std::vector<RankedEntry> slots;
    std::exception_ptr failure;
  };

  void adopt(const LoggedWrite& write, std::vector<RankedEntry>& slots);
  bool replay(Entry& entry, Reserve::Settling& settling);
  void forget(Entry& entry);
  bool replay_after_reclaim(Entry& entry, Reserve::Settling& settling);
  void replay_alone(std::span<const RankedEntry> slots);
  void replay_together(std::span<const RankedEntry> slots, unsigned workers);
  static std::vector<Share> share_out(std::span<const RankedEntry> slots, unsigned workers);
  void work(Share& share) noexcept;
  void collect(std::span<const Share> shares);
  void replay_cut();
  void finish_cut();
  void pass(std::span<const RankedEntry> slots) noexcept;
  void reclaim_if_due();
  void defer(std::span<const RankedEntry> slots) noexcept;

  Framework& framework_;
  Inspection& inspection_;
  Changes& changes_;
  Cache& cache_;
  const unsigned undo_records_;  // that make a reclamation due

  Waiting waiting_;
  std::size_t deferred_ = 0;  // writes of the cut
  Scaling scaling_;
  Workers workers_;
  std::uint64_t replays_ = 0, workers_used_ = 0, max_waiting_ = 0;
  std::uint64_t cut_to_ = 0;                    // what is replayed: records up to this number
  std::uint64_t replayed_to_ = 0;               // records up to this number are in the index
  std::uint64_t settled_to_ = 0;                // the last number after settle()
  std::atomic<std::uint64_t> caught_up_to_{0};  // replayed_to_, when none was deferred
  std::atomic<bool> out_of_space_{false};
  std::atomic<std::uint64_t> replay_begun_at_{0};  // the newest record then
  std::atomic<std::uint64_t> replayed_{0};         // entries; counted by workers
};

}  // namespace perdix::detail::index::tips
