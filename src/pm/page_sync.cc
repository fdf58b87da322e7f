#include "pm/page_sync.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <exception>
#include <thread>
#include <utility>

#include <perdix/error.h>

#include "pm/offset.h"
#include "util/cancellation.h"

namespace perdix::detail::pm {
namespace {

constexpr MemoryRange whole(MemoryRange range, std::uintptr_t unit) noexcept {
  return {range.begin & ~(unit - 1), (range.end + unit - 1) & ~(unit - 1)};
}

MemoryRange range_of(const void* p, std::size_t n) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(p);
  return {begin, begin + n};
}

/// The numbers of the PageSyncs that exist in the process. A thread's notes may outlive the
/// PageSync that they are for, and another PageSync may get its address. So notes name a PageSync
/// by a number that is never used again, and a thread without room for notes drops those whose
/// PageSync is gone. Atomics, not a lock: a child of fork() might find a lock held.
std::atomic<std::uint64_t> last_id{0};
std::array<std::atomic<std::uint64_t>, 256> ids{};

/// Set in the number of a PageSync for which `ids` had no place: is_there() then is always true.
constexpr std::uint64_t kUnlisted = std::uint64_t{1} << 63;

std::uint64_t new_id() noexcept {
  const std::uint64_t id = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
  for (std::atomic<std::uint64_t>& place : ids) {
    std::uint64_t none = 0;
    if (place.compare_exchange_strong(none, id)) return id;
  }
  return id | kUnlisted;
}

void forget_id(std::uint64_t id) noexcept {
  for (std::atomic<std::uint64_t>& place : ids) {
    std::uint64_t expected = id;
    if (place.compare_exchange_strong(expected, 0)) return;
  }
}

bool is_there(std::uint64_t id) noexcept {
  return (id & kUnlisted) != 0 ||
         std::any_of(ids.begin(), ids.end(), [&](const auto& place) { return place == id; });
}

}  // namespace

int KernelSync::sync(void* begin, std::size_t bytes) noexcept {
  return ::msync(begin, bytes, MS_SYNC) == 0 ? 0 : errno;
}

PageSync::PageSync(std::function<void()> on_failure, SyncDevice* device)
    : id_(new_id()),
      on_failure_(std::move(on_failure)),
      device_(device != nullptr ? *device : kernel_) {}

PageSync::~PageSync() { forget_id(id_); }

void PageSync::note(const void* p, std::size_t n) noexcept {
  const MemoryRange range = whole(range_of(p, n), kLineSize);
  PageNotes& notes = PageNotes::of_this_thread();
  if (notes.add(id_, range)) return;
  notes.forget_unless(is_there);
  if (notes.add(id_, range)) return;
  sync();  // earlier than its fence: that is always right
  if (notes.add(id_, range)) return;
  // Notes for other pools take all the room.
  SyncRequest request{.ranges = {&range, 1}, .changes = {}};
  submit(request);
}

void PageSync::store_for_all(std::uint64_t& word, std::uint64_t value) noexcept {
  for (;;) {
    {
      // Stored and noted under the lock: a thread that has seen the word enqueues its request after
      // that, so the same sync or an earlier one takes the note.
      const std::lock_guard lock(mutex_);
      if (for_all_count_ < for_all_.size()) {
        __atomic_store_n(&word, value, __ATOMIC_RELEASE);
        for_all_[for_all_count_++] = whole(range_of(&word, sizeof word), kLineSize);
        return;
      }
    }
    SyncRequest request;
    submit(request);
  }
}

void PageSync::sync() noexcept { commit({}); }

void PageSync::commit(std::span<const Change> changes) noexcept {
  assert(changes.size() <= kMaxChanges);
  PageNotes::Ranges ranges;
  const std::size_t count = PageNotes::of_this_thread().take(id_, ranges);
  if (count == 0 && changes.empty()) return;
  SyncRequest request{.ranges = {ranges.data(), count}, .changes = changes};
  submit(request);
}

void PageSync::submit(SyncRequest& request) noexcept {
  const util::NotCancelled not_cancelled;
  if (enqueue(request)) lead();
  while (request.turn.wait() == Turn::Kind::lead) lead();
}

/// Returns whether the caller has the lead.
bool PageSync::enqueue(SyncRequest& request) noexcept {
  const std::lock_guard lock(mutex_);
  *last_ = &request;
  last_ = &request.next;
  ++waiting_;
  if (leading_ || alone_ > 0) return false;
  return leading_ = true;
}

/// Serves waiting requests, and what store_for_all() has noted, by one sync, and hands the lead on.
/// The caller has the lead.
void PageSync::lead() noexcept {
  std::unique_lock lock(mutex_);
  wait_for_others(lock);
  SyncRequest* const group = take_group();
  const PageNotes::Ranges for_all = for_all_;
  SyncRequest all;
  all.ranges = {for_all.data(), std::exchange(for_all_count_, 0)};
  all.next = group;
  lock.unlock();
  if (!failed()) {
    if (const int error = write(&all); error != 0) fail(error);
  }
  for (const SyncRequest* request = group; request != nullptr; request = request->next) {
    make_all(request->changes);
  }
  lock.lock();
  expected_ = group_size_ + waiting_;
  hand_on(lock);
  for (SyncRequest* request = group; request != nullptr;) {
    SyncRequest* const next = request->next;  // a request is gone once it is done
    request->turn.give(Turn::Kind::done);
    request = next;
  }
}

/// Passes the lead, or the turn in alone(), to the next thread, and unlocks: before the threads are
/// woken that this sync has served, so that the next sync begins meanwhile.
void PageSync::hand_on(std::unique_lock<std::mutex>& lock) noexcept {
  leading_ = alone_ == 0 && first_ != nullptr;
  // It stays in the queue until it is served, which is the work of who has the lead: itself.
  SyncRequest* const heir = leading_ ? first_ : nullptr;
  const bool wake_alone = alone_ > 0;
  lock.unlock();
  if (heir != nullptr) heir->turn.give(Turn::Kind::lead);
  if (wake_alone) free_to_sync_.notify_one();
}

/// Yields until as many requests wait as the last sync served or met. The threads of that group
/// have just begun to run again, and most of them will soon come to their next fence; a sync costs
/// far more than to wait for them. Ends when no further request comes: other programs may have the
/// processors.
void PageSync::wait_for_others(std::unique_lock<std::mutex>& lock) noexcept {
  constexpr unsigned kFruitless = 2;
  for (unsigned fruitless = 0; waiting_ < expected_ && fruitless < kFruitless;) {
    const std::size_t before = waiting_;
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    fruitless = waiting_ > before ? 0 : fruitless + 1;
  }
}

/// Takes the longest first part of the queue that fits into one sync, at least one request if there
/// is any. Returns its first request, or null.
SyncRequest* PageSync::take_group() noexcept {
  SyncRequest* const group = first_;
  SyncRequest* end = group;
  BatchSize size;
  group_size_ = 0;
  for (; end != nullptr; end = end->next) {
    size.add(*end);
    if (group_size_ > 0 && !size.fits()) break;
    ++group_size_;
    last_ = &end->next;
  }
  waiting_ -= group_size_;
  SyncRequest** const cut = last_;
  first_ = end;
  if (end == nullptr) {
    last_ = &first_;
  } else {
    *cut = nullptr;
    while (*last_ != nullptr) last_ = &(*last_)->next;
  }
  return group;
}

int PageSync::write(const SyncRequest* group) noexcept {
  return journal_.has_value() ? journal_->append(group) : write_pages(group);
}

/// write() without a journal. The stores of commits must not reach the file before the ranges are
/// durable: so the ranges are synced first, and then each store is made and synced.
int PageSync::write_pages(const SyncRequest* group) noexcept {
  int error = 0;
  const auto sync = [&](MemoryRange range) {
    const int result = sync_pages(range);
    if (error == 0) error = result;
  };
  for (const SyncRequest* request = group; request != nullptr; request = request->next) {
    for (const MemoryRange range : request->ranges) sync(range);
  }
  for (const SyncRequest* request = group; request != nullptr; request = request->next) {
    for (const Change& change : request->changes) {
      make(change);
      sync(range_of(change.word, sizeof *change.word));
    }
  }
  return error;
}

int PageSync::sync_pages(MemoryRange range) noexcept {
  const MemoryRange pages = whole(range, kSyncPage);
  return device_.sync(reinterpret_cast<void*>(pages.begin), pages.end - pages.begin);
}

/// Calls sync() while no other sync runs. The call goes before all groups but that of the thread
/// that has the lead: otherwise a stream of groups could delay it without end. `sync` throws
/// nothing.
template <class Sync>
void PageSync::alone(const Sync& sync) {
  const util::NotCancelled not_cancelled;
  std::unique_lock lock(mutex_);
  ++alone_;
  free_to_sync_.wait(lock, [this] { return !leading_; });
  leading_ = true;
  lock.unlock();
  sync();
  lock.lock();
  --alone_;
  hand_on(lock);
}

/// Like alone(), for a sync() that returns 0 or an errno. Does nothing if a sync has failed before.
template <class Sync>
void PageSync::sync_alone(const Sync& sync) noexcept {
  alone([&] {
    if (failed()) return;
    if (const int error = sync(); error != 0) fail(error);
  });
}

void PageSync::sync_in_place(const void* p, std::size_t n) noexcept {
  sync_alone([&] { return sync_pages(range_of(p, n)); });
}

void PageSync::sync_file(File& file) {
  std::exception_ptr failure;
  alone([&] {
    try {
      if (failed()) throw Error(Errc::io_error, "an earlier sync has failed");
      file.sync();
    } catch (const std::exception&) {
      failure = std::current_exception();
      if (!failed()) fail(EIO);
    }
  });
  if (failure) std::rethrow_exception(failure);
}

void PageSync::start_journal() noexcept {
  sync_alone([&] { return journal_->start(); });
}

void PageSync::checkpoint() noexcept {
  if (!journal_.has_value()) return;
  SyncRequest request;  // takes along what was stored for all
  submit(request);
  sync_alone([&] { return journal_->checkpoint(); });
}

void PageSync::move_journal(const JournalPlace& place) noexcept {
  sync_alone([&] { return journal_->move(place); });
}

void PageSync::end_background() noexcept {
  if (!journal_.has_value()) return;
  journal_->end_background();
}

/// The one place where a failed sync is noticed. noexcept: a process that can't keep its stores
/// from the file ends here, as in a crash.
void PageSync::fail(int error) noexcept {
  if (journal_.has_value()) {
    journal_->give_up_background();
    journal_->end_background();  // invariant 3
  }
  if (on_failure_) on_failure_();
  error_.store(error, std::memory_order_release);
}

}  // namespace perdix::detail::pm
