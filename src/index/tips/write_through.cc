// Puts for which there is no reserve (reserve.h): they go into the index within their call, so a
// put that returns has its space.
//
// The record comes first, as for every write: so what a lookup or a scan sees is durable. If there
// is no space for the write, a second record cancels it. After a crash between the two records
// recovery applies the write; that is allowed, since its call has not returned and no thread has
// seen it. The call returns when the write is durable in the index, so no later replay needs space
// for it.
#include <algorithm>

#include <perdix/error.h>

#include "index/tips/core.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {
namespace {

/// Makes an entry for a record that cancels another one, whose number set_key() sets later: so that
/// append_cancel() takes no memory.
NewEntry make_cancel(Cache& cache) {
  constexpr char kNumber[sizeof(std::uint64_t)] = {};
  return cache.make_entry(Operation::cancel, 0, {kNumber, sizeof kNumber}, {});
}

}  // namespace

/// Makes a write in the index and shows it, once its record is durable. Returns no_space if the
/// index has no space for it. The caller holds replaying_ and the locks of the bucket and the ring.
Core::Attempt Core::apply_and_show(Cache::Bucket& bucket, Entry& entry, Entry* old) {
  // `old` is replayed, so the index has its value. From here on lookups of the key read the index,
  // as scans do: so both see the new value from the same moment on.
  if (old != nullptr) cache_->remove(bucket, *old);
  if (!apply(entry)) return Attempt::no_space;
  cache_->add(bucket, entry, nullptr);
  return Attempt::done;
}

/// Logs a write and makes it in the index; cancels the record if there is no space. The caller
/// holds replaying_.
Core::Attempt Core::log_and_apply(Entry& entry, Decide decide, void* context) {
  const auto cancel = make_cancel(*cache_);
  const epoch::Guard guard;
  Cache::Bucket& bucket = cache_->bucket(entry.hash());
  const std::lock_guard lock(bucket.lock);
  Entry* const old = Cache::find(bucket, entry.hash(), entry.key());
  if (!allows(entry, old, decide, context)) return Attempt::refused;
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

/// Replays all earlier writes, and makes this one in the index, durably. Returns no_space if the
/// pool has none for it or for an earlier write.
Core::Attempt Core::write_through(Entry& entry, Decide decide, void* context) {
  const std::lock_guard replaying(replaying_);
  replay();
  reclaim();
  if (!deferred_.empty()) replay();
  if (!deferred_.empty()) return Attempt::no_space;
  const Attempt attempt = log_and_apply(entry, decide, context);
  if (attempt == Attempt::done) make_durable();
  return attempt;
}

/// Makes the index durable. Errors are dropped: the write is in the index and in the log, so the
/// call succeeds. The caller holds replaying_.
void Core::make_durable() noexcept try {
  replay();
  reclaim();
} catch (const std::exception&) {
}

}  // namespace perdix::detail::index::tips
