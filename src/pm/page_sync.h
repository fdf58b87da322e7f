// Durability on an ordinary file: what a thread has flushed is synced at its next fence, together
// with what other threads wait for (group commit).
//
//   sync.note(p, n);        // a flush
//   sync.sync();            // a fence: what this thread has noted is durable
//   sync.commit(changes);   // a fence and several stores, which become durable together
//
// A thread that comes to a fence enqueues its request. If no sync runs, the thread leads: it takes
// all waiting requests, and one sync serves them. Threads that arrive during that sync wait for the
// next one, each by itself (pm/turn.h), and the leader hands the lead on to the first of them. So
// a sync wakes the threads that it has served, and one more. Requests are served in their order. A
// fence may have to wait for another thread of the pool that leads a sync, even if that thread is
// suspended: in this domain no operation that writes is lock-free.
//
// With a journal (pm/journal.h) a sync writes the lines of all requests there, in one piece, and
// the stores of their commits with them: see commit(). Without one, before a pool has its journal,
// the pages themselves are synced.
//
// A failed sync is sticky: after one it is unknown what is on the disk (the kernel may have marked
// pages clean that it could not write). Invariants:
//   1. One sync runs at a time, on the device of this. The kernel reports an error once for an open
//      file description, to the sync that asks first: a second sync at the same time would be told
//      that its pages are on the disk, though they were lost too. The journal's background thread
//      has a device of its own, with a description of its own, which is told of every error, too.
//   2. on_failure() is called once, by the thread whose sync failed, before that thread, or any
//      other whose request was not served, continues. So its effects precede all stores that a
//      thread makes behind such a fence, and the stores of commits that are not durable. An error
//      of the background thread is that of the next sync: until then nothing is lost, since the
//      half of the journal stays that it should have freed.
//   3. After it nothing is synced any more.
//
// Thread-safe, except use_journal().
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
  /// `on_failure` keeps later stores from reaching the file, or ends the process if it can't. It
  /// must not throw, note or sync. Syncs are made by `device`, which must outlive this, or by the
  /// kernel if it is null.
  explicit PageSync(std::function<void()> on_failure = nullptr, SyncDevice* device = nullptr);
  ~PageSync();
  PageSync(const PageSync&) = delete;
  PageSync& operator=(const PageSync&) = delete;

  /// Notes that [p, p+n) must be durable when this thread's next sync() or commit() returns. Takes
  /// no lock and no memory. Syncs earlier if the thread notes more than kCapacity places before its
  /// fence.
  void note(const void* p, std::size_t n) noexcept;

  /// Stores a word (release) without making it durable. If a thread has seen the word and then
  /// calls sync() or commit(), with something to make durable, the word is durable when that call
  /// returns. Runs a sync itself if too many such stores wait.
  void store_for_all(std::uint64_t& word, std::uint64_t value) noexcept;

  /// Makes durable what this thread noted.
  void sync() noexcept;

  /// Makes what this thread noted and the changes durable, then makes the changes in memory. After
  /// a crash either all changes are there, and all that was noted, or no change is. No thread sees
  /// a change before it is durable. The caller keeps other threads from changing these bits during
  /// the call. Without a journal less holds: once all that was noted is durable, the changes are
  /// made and synced one after the other.
  void commit(std::span<const Change> changes) noexcept;

  /// Makes [p, p+n) durable in its own place, not by the journal: for what an opening reads before
  /// it replays the journal.
  void sync_in_place(const void* p, std::size_t n) noexcept;

  /// Syncs all of a file, its length included. Throws io_error if this or an earlier sync failed.
  void sync_file(File& file);

  /// From now on syncs go to the journal. Called while no other thread syncs, and followed by
  /// start_journal() before the superblock says that the journal counts. `background`: as Journal
  /// has it; must outlive this, or end_background().
  void use_journal(const JournalPlace& place, SyncDevice* background = nullptr) {
    journal_.emplace(place, device_, background);
  }
  /// Makes the journal empty, durably. See use_journal().
  void start_journal() noexcept;

  /// Makes all that is in the journal durable in its own place, so that the journal is not needed
  /// any more. Does nothing without a journal.
  void checkpoint() noexcept;

  /// Goes on with the journal in another area, which the caller gives. As Journal::move().
  void move_journal(const JournalPlace& place) noexcept;

  /// Ends the journal's background thread, and its use of the pool: before the pool is unmapped.
  /// Called while no other thread syncs. All other calls go on as ever.
  void end_background() noexcept;

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
  bool enqueue(SyncRequest& request) noexcept;
  void lead() noexcept;
  void hand_on(std::unique_lock<std::mutex>& lock) noexcept;
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

  std::mutex mutex_;                      // guards what follows
  std::condition_variable free_to_sync_;  // for threads in alone()
  SyncRequest* first_ = nullptr;
  SyncRequest** last_ = &first_;
  PageNotes::Ranges for_all_;  // the first for_all_count_
  std::size_t for_all_count_ = 0;
  std::size_t waiting_ = 0;     // requests in the queue
  std::size_t group_size_ = 0;  // requests that the last sync served
  std::size_t expected_ = 0;    // these, and the requests that came while it ran
  std::size_t alone_ = 0;       // threads in alone(); while there are any, nobody gets the lead
  bool leading_ = false;        // a thread has the lead, or syncs in alone()
};

}  // namespace perdix::detail::pm
