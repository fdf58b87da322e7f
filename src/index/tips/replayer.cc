// From the logs into the plugged-in index, and the reclamation of the logs.
#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <perdix/error.h>

#include "epoch/guard.h"
#include "index/tips/core.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

/// A new word of the index: an integer, or a copy of a string in memory of the pool.
Word Core::new_word(std::string_view bytes, Kind kind) const {
  Word word = 0;
  if (kind == Kind::u64) {
    std::memcpy(&word, bytes.data(), sizeof word);
    return word;
  }
  void* const block = tips::allocate(sizeof(Bytes) + bytes.size());
  new (block) Bytes{bytes.size()};
  if (!bytes.empty()) std::memcpy(static_cast<Bytes*>(block) + 1, bytes.data(), bytes.size());
  return reinterpret_cast<Word>(block);
}

void Core::free_word(Word word, Kind kind) const {
  if (kind == Kind::bytes) tips::free(reinterpret_cast<void*>(word));
}

/// Puts the entry into the plug-in. The index gets its own copy of a string key only if the key is
/// new.
void Core::apply_put(const Entry& entry) const {
  const KeyWord wanted(entry.key(), kinds_.key);
  Word old = 0;
  bool there = kinds_.key == Kind::bytes && plugin_.find(index_, wanted.word(), &old);
  const Word value = new_word(entry.value(), kinds_.value);
  Word key = wanted.word();
  try {
    if (!there) key = new_word(entry.key(), kinds_.key);
    there = plugin_.put(index_, key, value, &old);
  } catch (...) {
    free_word(value, kinds_.value);
    if (!there && key != wanted.word()) free_word(key, kinds_.key);
    throw;
  }
  if (there) free_word(old, kinds_.value);
}

void Core::apply_erase(const Entry& entry) const {
  const KeyWord wanted(entry.key(), kinds_.key);
  Word key = 0, value = 0;
  if (!plugin_.erase(index_, wanted.word(), &key, &value)) return;
  free_word(key, kinds_.key);
  free_word(value, kinds_.value);
}

/// Makes the write of an entry in the plug-in. Returns false if there was no space for it: nothing
/// has happened then.
bool Core::apply(const Entry& entry) const {
  try {
    const Uno::Scope scope(uno_);
    entry.operation() == Operation::put ? apply_put(entry) : apply_erase(entry);
    report_index();
    return true;
  } catch (const Error& error) {
    report_index();
    // A pool that is only read since its file is lost has no more space either.
    const bool only_read = pool_.health().usable() && !pool_.health().writable();
    if ((error.code() != Errc::out_of_space && !only_read) || uno_.is_broken()) throw;
    return false;
  }
}

/// Replays an entry, unless a later one of the cut has superseded it, and takes it out of its
/// queue. Returns false if it has to wait for space; then it stays queued.
bool Core::replay_entry(Entry& entry) const {
  if (!entry.is_superseded(cut_to_)) {
    if (!apply(entry)) return false;
    replayed_.fetch_add(1, std::memory_order_relaxed);
  }
  reserve_.settle(need_of(entry));
  if (entry.operation() == Operation::erase) forget(entry);
  cache_->dequeue(entry);
  return true;
}

/// Takes a replayed erase out of the cache. The index no longer has the key, so lookups find the
/// same without this entry, and few of them would be faster with it.
void Core::forget(Entry& entry) const {
  Cache::Bucket& bucket = cache_->bucket(entry.hash());
  const std::lock_guard lock(bucket.lock);
  if (entry.has(Entry::kLinked)) cache_->remove(bucket, entry);
}

/// Replays an entry for which there was no space: with what a reclamation frees, then with the
/// reserve. Returns false if that is not enough. The caller holds replaying_.
bool Core::replay_with_reserve(Entry& entry) const {
  reclaim();
  do {
    if (replay_entry(entry)) return true;
  } while (reserve_.spend());
  return false;
}

/// Replays entries on this thread. Defers those for which there is no space, and if it throws, all
/// that are left. The caller holds replaying_.
void Core::replay_alone(std::span<Entry* const> entries) const {
  auto next = entries.begin();
  try {
    while (next != entries.end()) {
      Entry& entry = **next;
      const bool done = replay_entry(entry) || replay_with_reserve(entry);
      ++next;
      if (!done) deferred_.push_back(&entry);
      // This reclaims no record of the cut before all of the cut is replayed. After a crash they
      // are replayed once more, which does no harm (D6).
      if (is_reclamation_due()) reclaim();
    }
  } catch (...) {
    deferred_.insert(deferred_.end(), next, entries.end());  // there is room
    throw;
  }
}

/// Divides entries among workers. All entries of a key go to one worker, in their order. No other
/// worker may read an entry: it may be freed once it is replayed.
std::vector<Core::Share> Core::share_out(std::span<Entry* const> entries, unsigned workers) {
  std::vector<Share> shares(workers);
  for (Entry* entry : entries) shares[entry->hash() % workers].entries.push_back(entry);
  return shares;
}

/// Runs on a worker. Replays the entries of a share. Leaves those in the share for which there was
/// no space, and all others from the first exception on, which it notes.
void Core::work(Share& share) const noexcept {
  const auto is_done = [&](Entry* entry) {
    try {
      return share.failure == nullptr && replay_entry(*entry);
    } catch (const std::exception&) {
      share.failure = std::current_exception();
      return false;
    }
  };
  std::erase_if(share.entries, is_done);
}

/// As replay_alone(), on several threads, this one among them. The caller holds replaying_.
void Core::replay_together(std::span<Entry* const> entries, unsigned workers) const {
  std::vector<Share> shares;
  try {
    shares = share_out(entries, workers);
  } catch (...) {
    deferred_.insert(deferred_.end(), entries.begin(), entries.end());  // there is room
    throw;
  }
  workers_.run(workers, [&](unsigned i) { work(shares[i]); });
  std::exception_ptr failure;
  for (const Share& share : shares)
    if (share.failure) failure = share.failure;
  for (const Share& share : shares) {
    if (failure) {
      deferred_.insert(deferred_.end(), share.entries.begin(), share.entries.end());
      continue;
    }
    try {
      replay_alone(share.entries);  // the worker found no space for these
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
  if (is_reclamation_due()) reclaim();
}

/// Replays the entries of a cut, or defers them. deferred_ has capacity for all of them, and the
/// caller holds replaying_.
void Core::replay_queued(const std::vector<Entry*>& entries) const {
  constexpr std::size_t kAtOnce = 256;  // between two looks at the UNO logs
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
    deferred_.insert(deferred_.end(), rest.begin(), rest.end());  // there is room
    throw;
  }
}

/// Replays the writes made before the call. Of the writes of one key in the cut the last one is
/// applied (D2), even if a later write that is not in the cut has superseded it since: a caller
/// that waits for this replay must see it. The caller holds replaying_.
void Core::replay() const {
  inspect({});
  require_whole();
  backlog_.store(0, std::memory_order_relaxed);
  OperationLogs::Cut cut = logs_.cut(deferred_);
  deferred_ = std::move(cut.left);
  cut_to_ = cut.number;
  most_waiting_ = std::max<std::uint64_t>(most_waiting_, cut.entries.size());
  const auto start = std::chrono::steady_clock::now();
  replay_queued(cut.entries);
  cache_->trim();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  scaling_.adapt(backlog_.load(std::memory_order_relaxed), cut.entries.size(), took.count());
  replayed_to_ = cut.number;
  for (const Entry* entry : deferred_) replayed_to_ = std::min(replayed_to_, entry->number() - 1);
  // Release: a thread that reads false finds writes that were deferred earlier in the index.
  out_of_space_.store(!deferred_.empty(), std::memory_order_release);
  if (deferred_.empty()) caught_up_to_.store(cut.number, std::memory_order_release);
  ++replays_;
}

/// Whether all writes made before the call are in the index. Each of them has a number that
/// last_number() covers.
bool Core::is_caught_up() const {
  const std::uint64_t newest = logs_.last_number();
  return is_inspected() && caught_up_to_.load(std::memory_order_acquire) >= newest;
}

void Core::catch_up() const {
  if (is_caught_up()) return require_whole();
  const std::lock_guard lock(replaying_);
  replay();
  if (logs_.is_due()) reclaim();
}

/// Replays, then reclaims: that makes room in the logs, and frees what plug-ins have given back.
void Core::replay_all() const {
  const std::lock_guard lock(replaying_);
  replay();
  reclaim();
}

/// Calls replay() and reclaim() until nothing is left that can be replayed, then gives the space
/// back that the index keeps for later writes.
void Core::settle() const {
  const std::lock_guard lock(replaying_);
  for (std::size_t before = 0;; before = deferred_.size()) {
    replay();
    reclaim();
    if (deferred_.empty() || deferred_.size() == before) break;
    pool_.allocator().reclaim();  // so that what was freed is there for them
  }
  uno_.shrink(1);
  reserve_.release_spare();
  settled_to_ = logs_.last_number();
}

/// Whether nothing was written or replayed since settle(). Then the background thread must not
/// replay, also if writes wait for space. Each attempt may change the index, as a table that is
/// being resized moves some pairs, and a check may already have listed the blocks of the index. The
/// caller holds replaying_.
bool Core::is_settled() const { return logs_.last_number() == settled_to_ && uno_.is_empty(); }

/// Makes the changes of the index durable, then empties the undo log and the memory log, and drops
/// the records that are replayed. The caller holds replaying_.
void Core::reclaim() const {
  require_whole();
  if (uno_.is_empty() && replayed_to_ == pm::load(header_.reclaimed)) return;
  // First: what follows gives up what a rollback would need.
  uno_.flush(replayed_to_);
  finish_reclamation();
  ++reclamations_;
}

/// Steps 3 to 6 of a reclamation. Recovery calls it, too, if a crash came between them.
void Core::finish_reclamation() const {
  uno_.free_freed();
  const OperationLogs::Heads heads = logs_.reclaim();
  uno_.start_epoch();  // its first fence makes the heads durable
  logs_.advance(heads);
  constexpr std::size_t kKeptLogBlocks = 16;
  uno_.shrink(kKeptLogBlocks);
}

void Core::replay_in_background() noexcept {
  requested_.store(false);
  if (!is_inspected() && settings_.resumes) return;  // the inspection thread replays, too
  try {
    const std::lock_guard lock(replaying_);
    if (is_settled()) return;
    replay();
    if (logs_.is_due()) reclaim();
  } catch (const std::exception&) {  // the next call that needs a replay meets the same error
  }
}

bool Core::reclaim_space() noexcept {
  try {
    settle();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void Core::for_each_pending(const std::function<void(const Entry&)>& show) const {
  // What catch_up() has deferred is in the index before this becomes false again.
  if (!out_of_space_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(replaying_);
  for (const Entry* entry : deferred_)
    if (!entry->is_superseded(cut_to_)) show(*entry);
}

}  // namespace perdix::detail::index::tips
