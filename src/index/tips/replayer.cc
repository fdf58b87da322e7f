#include "index/tips/replayer.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "index/tips/settings.h"

namespace perdix::detail::index::tips {

namespace {

/// Entries of a large cut have left the processor's caches, and their order is not that of their
/// addresses.
void prefetch_behind(std::span<const RankedEntry>::iterator next,
                     std::span<const RankedEntry> slots) {
  constexpr std::ptrdiff_t kAhead = 8;
  if (slots.end() - next > kAhead) __builtin_prefetch((next + kAhead)->entry, 1);
}

}  // namespace

Replayer::Replayer(Framework& framework, Inspection& inspection, Changes& changes, Cache& cache,
                   const TipsOptions& options)
    : framework_(framework),
      inspection_(inspection),
      changes_(changes),
      cache_(cache),
      undo_records_(options.undo_records),
      waiting_(framework.logs, framework.reclaimer(), changes.key_kind(), changes.is_ordered()),
      scaling_(options.min_workers, max_workers(options)) {}

Replayer::~Replayer() {
  waiting_.for_each([this](Entry& entry) { cache_.dequeue(entry); });
}

void Replayer::recover() {
  std::vector<RankedEntry> slots;
  try {
    framework_.logs.recover([&](const LoggedWrite& write) { adopt(write, slots); });
    deferred_ = slots.size();
    waiting_.adopt(slots);
  } catch (...) {
    for (const RankedEntry& slot : slots) cache_.dequeue(*slot.entry);
    throw;
  }
  replayed_to_ = framework_.reclaimed();
  replay_begun_at_ = framework_.logs.last_number() - deferred_;
}

/// A write that was not replayed durably: found in the cache from now on, and replayed again.
void Replayer::adopt(const LoggedWrite& write, std::vector<RankedEntry>& slots) {
  const std::uint64_t hash = cache_.hash_of(write.key);
  NewEntry made = cache_.make_entry(write.operation, hash, write.key, write.value);
  slots.emplace_back(*made, changes_.key_kind());
  Entry& entry = *made.release();
  entry.set_number(write.number);
  Cache::Bucket& bucket = cache_.bucket(hash);
  Entry* const old = Cache::find(bucket, hash, write.key);
  if (old != nullptr) old->supersede(write.number);
  entry.set(Entry::kQueued);
  framework_.reserve.admit_logged(changes_.need_of(entry));
  cache_.add(bucket, entry, old);
}

/// Replays an entry, unless a later one of the cut has superseded it. Returns false if it has to
/// wait for space.
bool Replayer::replay(Entry& entry, Reserve::Settling& settling) {
  const Need need = changes_.need_of(entry);
  if (!entry.is_superseded(cut_to_)) {
    if (!changes_.apply(entry, need)) return false;
    replayed_.fetch_add(1, std::memory_order_relaxed);
  }
  settling.add(need);
  if (entry.operation() == Operation::erase) forget(entry);
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

/// Keeps writes of the cut for a later replay.
void Replayer::defer(std::span<const RankedEntry> slots) noexcept {
  for (const RankedEntry& slot : slots) slot.entry->set(Entry::kDeferred);
  deferred_ += slots.size();
}

/// What was replayed next of the cut waits no longer. Once a write is deferred this is left to the
/// end of the cut, since scans have to find that write in it.
void Replayer::pass(std::span<const RankedEntry> slots) noexcept {
  if (deferred_ != 0) return;
  waiting_.pass(slots.size());
  for (const RankedEntry& slot : slots) cache_.dequeue(*slot.entry);
}

void Replayer::reclaim_if_due() {
  if (framework_.uno.is_due(undo_records_)) reclaim();
}

/// Replays writes on this thread. Defers those for which there is no space, and if it throws, all
/// that are left.
void Replayer::replay_alone(std::span<const RankedEntry> slots) {
  const Uno::Alone alone(framework_.uno);
  Reserve::Settling settling(framework_.reserve);
  auto next = slots.begin();
  try {
    for (; next != slots.end(); ++next) {
      prefetch_behind(next, slots);
      Entry& entry = *next->entry;
      if (!replay(entry, settling) && !replay_after_reclaim(entry, settling)) defer({next, 1});
      // This reclaims no record of the cut before all of the cut is replayed. After a crash they
      // are replayed once more, which does no harm (D6).
      reclaim_if_due();
    }
  } catch (...) {
    defer({next, slots.end()});
    throw;
  }
}

/// Divides writes among workers. All writes of a key go to one worker, in their order.
std::vector<Replayer::Share> Replayer::share_out(std::span<const RankedEntry> slots,
                                                 unsigned workers) {
  std::vector<Share> shares(workers);
  for (const RankedEntry& slot : slots) shares[slot.entry->hash() % workers].slots.push_back(slot);
  return shares;
}

/// Runs on a worker. Replays the writes of a share. Leaves those in the share for which there was
/// no space, and all others from the first exception on, which it notes.
void Replayer::work(Share& share) noexcept {
  Reserve::Settling settling(framework_.reserve);
  const auto is_done = [&](const RankedEntry& slot) {
    try {
      return share.failure == nullptr && replay(*slot.entry, settling);
    } catch (const std::exception&) {
      share.failure = std::current_exception();
      return false;
    }
  };
  std::erase_if(share.slots, is_done);
}

/// Replays what workers have left in their shares, which needs space. Defers all of it if one of
/// them has failed.
void Replayer::collect(std::span<const Share> shares) {
  std::exception_ptr failure;
  for (const Share& share : shares)
    if (share.failure) failure = share.failure;
  for (const Share& share : shares) {
    try {
      failure ? defer(share.slots) : replay_alone(share.slots);
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

/// As replay_alone(), on several threads, this one among them.
void Replayer::replay_together(std::span<const RankedEntry> slots, unsigned workers) {
  std::vector<Share> shares;
  try {
    shares = share_out(slots, workers);
  } catch (...) {
    defer(slots);
    throw;
  }
  workers_.run(workers, [&](unsigned i) { work(shares[i]); });
  collect(shares);
  reclaim_if_due();
}

/// Replays the writes of the cut, or defers them.
void Replayer::replay_cut() {
  constexpr std::size_t kAtOnce = 256, kAtOnceTogether = 2048;
  std::span<const RankedEntry> rest = waiting_.rest();
  const unsigned workers =
      pm::background_work() && rest.size() >= kAtOnceTogether ? scaling_.workers() : 1;
  workers_used_ += workers;
  try {
    while (!rest.empty()) {
      const auto some = rest.first(std::min(workers == 1 ? kAtOnce : kAtOnceTogether, rest.size()));
      rest = rest.subspan(some.size());
      workers == 1 ? replay_alone(some) : replay_together(some, workers);
      pass(some);
      waiting_.collect();
    }
  } catch (...) {
    defer(rest);
    throw;
  }
}

/// Replays the cut. What is not deferred of it waits no longer.
void Replayer::finish_cut() {
  const auto end = [this] { waiting_.end_cut([this](Entry& entry) { cache_.dequeue(entry); }); };
  try {
    replay_cut();
  } catch (...) {
    end();
    throw;
  }
  end();
}

void Replayer::run() {
  inspection_.run();
  framework_.uno.require_whole();
  cut_to_ = waiting_.cut();
  deferred_ = 0;
  const std::size_t waiting = waiting_.rest().size();
  replay_begun_at_.store(cut_to_, std::memory_order_relaxed);
  max_waiting_ = std::max<std::uint64_t>(max_waiting_, waiting);
  const auto start = std::chrono::steady_clock::now();
  finish_cut();
  cache_.trim();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  scaling_.adapt(backlog(), waiting, took.count());
  replayed_to_ = cut_to_;
  for (const RankedEntry& slot : waiting_.rest())
    replayed_to_ = std::min(replayed_to_, slot.entry->number() - 1);
  // Release: a thread that reads false finds writes that were deferred earlier in the index.
  out_of_space_.store(has_deferred(), std::memory_order_release);
  if (!has_deferred()) caught_up_to_.store(cut_to_, std::memory_order_release);
  ++replays_;
}

void Replayer::settle() {
  for (std::size_t before = 0;; before = deferred_) {
    run();
    reclaim();
    if (deferred_ == 0 || deferred_ == before) break;
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
  stats.waiting = deferred_;
  stats.replays = replays_;
  stats.replayed = replayed_.load(std::memory_order_relaxed);
  stats.max_waiting = max_waiting_;
  stats.workers = scaling_.workers();
  stats.workers_used = workers_used_;
}

}  // namespace perdix::detail::index::tips
