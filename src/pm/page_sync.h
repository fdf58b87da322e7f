// Durability on an ordinary file: what a thread has flushed is synced at its next fence, together
// with what other threads wait for (group commit).
//
// A thread that comes to a fence enqueues its request. If no sync runs, it leads: it takes all
// waiting requests, and one sync serves them. Threads that arrive during that sync wait for the
// next one. Requests are served in their order. So a fence waits for threads of its pool that lead
// a sync, also if one of them is suspended: in this domain no operation that writes is lock-free.
//
// With a journal (pm/journal.h) a sync writes the lines of all requests there, in one piece, and
// the stores of their commits with them: see commit(). Without one, before a pool has its journal,
// the pages themselves are synced.
//
// A failed sync is sticky: after one it is unknown what is on the disk (the kernel may have marked
// pages clean that it could not write). Invariants:
//   1. One sync runs at a time. The kernel reports an error once for an open file, to the sync that
//      asks first: a second sync at the same time would be told that its pages are on the disk,
//      though they were lost too.
//   2. on_failure() is called once, by the thread whose sync failed, before that thread, or any
//      other whose request was not served, continues. So its effects precede all stores that a
//      thread makes behind such a fence, and the stores of commits that are not durable.
//   3. After it nothing is synced any more.
//
// Thread-safe but for use_journal().
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>

#include "pm/file.h"
#include "pm/journal.h"
#include "pm/sync_device.h"
#include "pm/sync_request.h"

namespace perdix::detail::pm {

class PageSync {
 public:
  /// on_failure must not throw: if it can't keep later stores from reaching the file, the process
  /// must end. It must neither note nor sync. Syncs by the kernel, or by `device`, which must
  /// outlive this.
  explicit PageSync(std::function<void()> on_failure = nullptr, SyncDevice* device = nullptr);
  ~PageSync();
  PageSync(const PageSync&) = delete;
  PageSync& operator=(const PageSync&) = delete;

  /// Notes that [p, p+n) must be durable when this thread's next sync() or commit() returns. No
  /// lock, no allocation; a sync if a thread flushes more than kCapacity places before its fence.
  void note(const void* p, std::size_t n) noexcept;

  /// Stores a word (release), which is durable when any thread's sync() or commit() returns that
  /// has something to do and begins after that thread has seen the word. Runs a sync itself if too
  /// many such stores wait.
  void store_for_all(std::uint64_t& word, std::uint64_t value) noexcept;

  /// Makes durable what this thread noted.
  void sync() noexcept;

  /// Makes durable what this thread noted and the changes, and makes the changes. After a crash
  /// there is all of it or nothing of the changes; before it is durable no change is in memory. The
  /// caller keeps other threads from changing these bits during the call.
  void commit(std::span<const Change> changes) noexcept;

  /// Makes [p, p+n) durable where it is, past the journal: for what is read before the journal.
  void sync_in_place(const void* p, std::size_t n) noexcept;

  /// Syncs all of a file, its length included. Throws io_error, also if an earlier sync failed.
  void sync_file(File& file);

  /// From now on syncs go to the journal. Called while no other thread syncs, and followed by
  /// start_journal() before the superblock says that the journal counts.
  void use_journal(const JournalPlace& place) { journal_.emplace(place, device_); }
  void start_journal() noexcept;

  /// Makes all that is in the journal durable in its own place, so that it is not needed any more.
  void checkpoint() noexcept;

  /// Whether a commit is one sync, so that its stores are atomic.
  bool journals() const noexcept { return journal_.has_value(); }

  /// True once a sync has failed.
  bool failed() const noexcept { return error_.load(std::memory_order_acquire) != 0; }

  /// The errno of the first sync that failed; 0 if none has.
  int error() const noexcept { return error_.load(std::memory_order_acquire); }

 private:
  template <class Sync>
  void alone(const Sync& sync);
  template <class Sync>
  void sync_alone(const Sync& sync) noexcept;
  void submit(SyncRequest& request) noexcept;
  void lead(std::unique_lock<std::mutex>& lock) noexcept;
  void wait_for_others(std::unique_lock<std::mutex>& lock) noexcept;
  SyncRequest* take_group() noexcept;
  int write(const SyncRequest* group) noexcept;
  int write_pages(const SyncRequest* group) noexcept;
  int sync_pages(MemoryRange range) noexcept;
  void fail(int error) noexcept;

  const std::uint64_t id_;
  const std::function<void()> on_failure_;
  KernelSync kernel_;
  SyncDevice& device_;
  std::optional<Journal> journal_;
  std::atomic<int> error_{0};

  std::mutex mutex_;  // guards what follows
  std::condition_variable synced_;
  SyncRequest* first_ = nullptr;
  SyncRequest** last_ = &first_;
  PageNotes::Ranges for_all_;  // the first for_all_count_
  std::size_t for_all_count_ = 0;
  std::size_t waiting_ = 0;     // in the queue
  std::size_t group_size_ = 0;  // of the last sync
  std::size_t expected_ = 0;    // threads that it served, or that came while it ran
  std::size_t alone_ = 0;       // threads that wait in alone(), before which no group is taken
  bool leading_ = false;
};

}  // namespace perdix::detail::pm
