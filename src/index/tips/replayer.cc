#include "index/tips/replayer.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "index/tips/key_order.h"
#include "index/tips/settings.h"

namespace perdix::detail::index::tips {

namespace {

/// Entries of a large cut have left the processor's caches, and their order is not that of their
/// addresses.
void prefetch_behind(std::span<Entry* const>::iterator next, std::span<Entry* const> entries) {
  constexpr std::ptrdiff_t kAhead = 8;
  if (entries.end() - next > kAhead) __builtin_prefetch(*(next + kAhead), 1);
}

}  // namespace

Replayer::Replayer(Framework& framework, Inspection& inspection, Changes& changes, Cache& cache,
                   const TipsOptions& options)
    : framework_(framework),
      inspection_(inspection),
      changes_(changes),
      cache_(cache),
      undo_records_(options.undo_records),
      scaling_(options.min_workers, max_workers(options)) {}

Replayer::~Replayer() {
  for (Entry* entry : deferred_) cache_.dequeue(*entry);
  framework_.logs.take_queued([this](Entry& entry) { cache_.dequeue(entry); });
}

void Replayer::recover() {
  framework_.logs.recover([this](const LoggedWrite& write) { adopt(write); });
  replayed_to_ = framework_.reclaimed();
  replay_begun_at_ = framework_.logs.last_number() - deferred_.size();
}

/// A write that was not replayed durably: found in the cache from now on, and replayed again.
void Replayer::adopt(const LoggedWrite& write) {
  const std::uint64_t hash = cache_.hash_of(write.key);
  NewEntry made = cache_.make_entry(write.operation, hash, write.key, write.value);
  deferred_.push_back(made.get());
  Entry& entry = *made.release();
  entry.set_number(write.number);
  Cache::Bucket& bucket = cache_.bucket(hash);
  Entry* const old = Cache::find(bucket, hash, write.key);
  if (old != nullptr) old->supersede(write.number);
  entry.set(Entry::kQueued);
  framework_.reserve.admit_logged(changes_.need_of(entry));
  cache_.add(bucket, entry, old);
}

/// Replays an entry, unless a later one of the cut has superseded it, and takes it out of its
/// queue. Returns false if it has to wait for space; then it stays queued.
bool Replayer::replay(Entry& entry, Reserve::Settling& settling) {
  const Need need = changes_.need_of(entry);
  if (!entry.is_superseded(cut_to_)) {
    if (!changes_.apply(entry, need)) return false;
    replayed_.fetch_add(1, std::memory_order_relaxed);
  }
  settling.add(need);
  if (entry.operation() == Operation::erase) forget(entry);
  cache_.dequeue(entry);
  return true;
}

/// Takes a replayed erase out of the cache. The index no longer has the key, so lookups find the
/// same without this entry, and few of them would be faster with it.
void Replayer::forget(Entry& entry) {
  Cache::Bucket& bucket = cache_.bucket(entry.hash());
  const std::lock_guard lock(bucket.lock);
  if (entry.has(Entry::kLinked)) cache_.remove(bucket, entry);
}

/// Replays an entry for which there was no space, with what a reclamation frees. Returns false if
/// that is not enough.
bool Replayer::replay_after_reclaim(Entry& entry, Reserve::Settling& settling) {
  reclaim();
  return replay(entry, settling);
}

/// Keeps entries for a later replay. run() has made room for all of its cut.
void Replayer::defer(std::span<Entry* const> entries) noexcept {
  deferred_.insert(deferred_.end(), entries.begin(), entries.end());
}

void Replayer::reclaim_if_due() {
  if (framework_.uno.is_due(undo_records_)) reclaim();
}

/// Replays entries on this thread. Defers those for which there is no space, and if it throws, all
/// that are left.
void Replayer::replay_alone(std::span<Entry* const> entries) {
  const Uno::Alone alone(framework_.uno);
  Reserve::Settling settling(framework_.reserve);
  auto next = entries.begin();
  try {
    while (next != entries.end()) {
      prefetch_behind(next, entries);
      Entry& entry = **next;
      const bool done = replay(entry, settling) || replay_after_reclaim(entry, settling);
      ++next;
      if (!done) deferred_.push_back(&entry);
      // This reclaims no record of the cut before all of the cut is replayed. After a crash they
      // are replayed once more, which does no harm (D6).
      reclaim_if_due();
    }
  } catch (...) {
    defer({next, entries.end()});
    throw;
  }
}

/// Divides entries among workers. All entries of a key go to one worker, in their order. No other
/// worker may read an entry: it may be freed once it is replayed.
std::vector<Replayer::Share> Replayer::share_out(std::span<Entry* const> entries,
                                                 unsigned workers) {
  std::vector<Share> shares(workers);
  for (Entry* entry : entries) shares[entry->hash() % workers].entries.push_back(entry);
  return shares;
}

/// Runs on a worker. Replays the entries of a share. Leaves those in the share for which there was
/// no space, and all others from the first exception on, which it notes.
void Replayer::work(Share& share) noexcept {
  Reserve::Settling settling(framework_.reserve);
  const auto is_done = [&](Entry* entry) {
    try {
      return share.failure == nullptr && replay(*entry, settling);
    } catch (const std::exception&) {
      share.failure = std::current_exception();
      return false;
    }
  };
  std::erase_if(share.entries, is_done);
}

/// Replays what workers have left in their shares, which needs space. Defers all of it if one of
/// them has failed.
void Replayer::collect(std::span<const Share> shares) {
  std::exception_ptr failure;
  for (const Share& share : shares)
    if (share.failure) failure = share.failure;
  for (const Share& share : shares) {
    try {
      failure ? defer(share.entries) : replay_alone(share.entries);
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

/// As replay_alone(), on several threads, this one among them.
void Replayer::replay_together(std::span<Entry* const> entries, unsigned workers) {
  std::vector<Share> shares;
  try {
    shares = share_out(entries, workers);
  } catch (...) {
    defer(entries);
    throw;
  }
  workers_.run(workers, [&](unsigned i) { work(shares[i]); });
  collect(shares);
  reclaim_if_due();
}

/// Replays the entries of a cut, or defers them.
void Replayer::replay_queued(const std::vector<Entry*>& entries) {
  constexpr std::size_t kAtOnce = 2048;  // between two looks at the UNO logs
  const unsigned workers =
      pm::background_work() && entries.size() >= kAtOnce ? scaling_.workers() : 1;
  workers_used_ += workers;
  std::span<Entry* const> rest = entries;
  try {
    while (!rest.empty()) {
      const auto some = rest.first(std::min(kAtOnce, rest.size()));
      rest = rest.subspan(some.size());
      workers == 1 ? replay_alone(some) : replay_together(some, workers);
    }
  } catch (...) {
    defer(rest);
    throw;
  }
}

void Replayer::run() {
  inspection_.run();
  framework_.uno.require_whole();
  OperationLogs::Cut cut = framework_.logs.cut(deferred_);
  deferred_ = std::move(cut.left);
  cut_to_ = cut.number;
  replay_begun_at_.store(cut.number, std::memory_order_relaxed);
  max_waiting_ = std::max<std::uint64_t>(max_waiting_, cut.entries.size());
  const auto start = std::chrono::steady_clock::now();
  if (changes_.is_ordered()) sort_by_key(cut.entries, changes_.key_kind());
  replay_queued(cut.entries);
  cache_.trim();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  scaling_.adapt(backlog(), cut.entries.size(), took.count());
  replayed_to_ = cut.number;
  for (const Entry* entry : deferred_) replayed_to_ = std::min(replayed_to_, entry->number() - 1);
  // Release: a thread that reads false finds writes that were deferred earlier in the index.
  out_of_space_.store(!deferred_.empty(), std::memory_order_release);
  if (deferred_.empty()) caught_up_to_.store(cut.number, std::memory_order_release);
  ++replays_;
}

void Replayer::settle() {
  for (std::size_t before = 0;; before = deferred_.size()) {
    run();
    reclaim();
    if (deferred_.empty() || deferred_.size() == before) break;
    framework_.take_freed_back();  // so that it is there for them
  }
  framework_.release_spare(changes_.need_alike());
  settled_to_ = framework_.logs.last_number();
}

bool Replayer::is_settled() const {
  return framework_.logs.last_number() == settled_to_ && framework_.uno.is_empty();
}

/// Each write made before the call has a number that last_number() covers.
bool Replayer::is_caught_up() const {
  const std::uint64_t newest = framework_.logs.last_number();
  return inspection_.is_done() && caught_up_to_.load(std::memory_order_acquire) >= newest;
}

void Replayer::count(TipsStats& stats) const {
  stats.waiting = deferred_.size();
  stats.replays = replays_;
  stats.replayed = replayed_.load(std::memory_order_relaxed);
  stats.max_waiting = max_waiting_;
  stats.workers = scaling_.workers();
  stats.workers_used = workers_used_;
}

}  // namespace perdix::detail::index::tips
