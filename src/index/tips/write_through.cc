#include "index/tips/write_through.h"

#include <exception>
#include <mutex>

#include "epoch/guard.h"

namespace perdix::detail::index::tips {
namespace {

/// Makes an entry for a record that cancels another one, whose number set_key() sets later: so that
/// append_cancel() takes no memory.
NewEntry make_cancel(Cache& cache) {
  constexpr char kNumber[sizeof(std::uint64_t)] = {};
  return cache.make_entry(Operation::cancel, 0, {kNumber, sizeof kNumber}, {});
}

/// Makes the index durable. Errors are dropped: the write is in the index and in the log, so the
/// call succeeds.
void make_durable(Replayer& replayer) noexcept try {
  replayer.run();
  replayer.reclaim();
} catch (const std::exception&) {
}

}  // namespace

/// Makes a write in the index and shows it, once its record is durable. Returns no_space if the
/// index has no space for it. The caller holds the locks of the bucket and the ring.
Attempt WriteThrough::apply_and_show(Cache::Bucket& bucket, Entry& entry, Entry* old) {
  // `old` is replayed, so the index has its value. From here on lookups of the key read the index,
  // as scans do: so both see the new value from the same moment on.
  if (old != nullptr) cache_.remove(bucket, *old);
  if (!changes_.apply(entry)) return Attempt::no_space;
  cache_.add(bucket, entry, nullptr);
  return Attempt::done;
}

/// Logs a write and makes it in the index; cancels the record if there is no space.
Attempt WriteThrough::log_and_apply(Entry& entry, const Condition& condition) {
  const auto cancel = make_cancel(cache_);
  const epoch::Guard guard;
  Cache::Bucket& bucket = cache_.bucket(entry.hash());
  const std::lock_guard lock(bucket.lock);
  Entry* const old = Cache::find(bucket, entry.hash(), entry.key());
  if (!condition.allows(entry, old, inspection_)) return Attempt::refused;
  if (old != nullptr && old->has(Entry::kQueued)) return Attempt::no_room;  // replayed first
  OperationLogs::Ring* ring = nullptr;
  const auto ring_lock = logs_.lock_ring(ring);
  if (!logs_.has_room(*ring, entry, *cancel) || !logs_.append(*ring, entry))
    return Attempt::no_room;
  cancel->set_key(&entry.number());
  Attempt attempt = Attempt::no_space;
  try {
    attempt = apply_and_show(bucket, entry, old);
  } catch (...) {
    logs_.append_cancel(*ring, *cancel);
    throw;
  }
  if (attempt == Attempt::no_space) logs_.append_cancel(*ring, *cancel);
  return attempt;
}

Attempt WriteThrough::write(Entry& entry, const Condition& condition, Replayer& replayer) {
  replayer.run();
  replayer.reclaim();
  if (replayer.has_deferred()) replayer.run();
  if (replayer.has_deferred()) return Attempt::no_space;
  const Attempt attempt = log_and_apply(entry, condition);
  if (attempt == Attempt::done) make_durable(replayer);
  return attempt;
}

}  // namespace perdix::detail::index::tips
