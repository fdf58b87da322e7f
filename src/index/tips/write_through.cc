// Puts for which there is no reserve (reserve.h): they go into the index within their call, so that
// a call that returns has got its space.
//
// The record comes first, as always: what a lookup or a scan sees is durable. If there is no space
// for the write, a second record cancels it. A crash between the two applies the write, which has
// not returned and which no thread has seen. The call returns when the index has the write durably,
// so no later replay needs space for it.
#include <algorithm>

#include <perdix/error.h>

#include "index/tips/core.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {
namespace {

/// An entry that will cancel another one.
NewEntry make_cancel(Cache& cache) {
  constexpr char kNumber[sizeof(std::uint64_t)] = {};
  return cache.make_entry(Operation::cancel, 0, {kNumber, sizeof kNumber}, {});
}

}  // namespace

/// With the locks of bucket and ring, and replaying_; the record is durable.
Core::Attempt Core::apply_and_show(Cache::Bucket& bucket, Entry& entry, Entry* old) {
  // Lookups go to the index from here on, as scans do; so they see the write with them.
  if (old != nullptr) cache_->remove(bucket, *old);
  if (!apply(entry)) return Attempt::no_space;
  cache_->add(bucket, entry, nullptr);
  return Attempt::done;
}

/// With replaying_.
Core::Attempt Core::log_and_apply(Entry& entry, Decide decide, void* context) {
  const auto cancel = make_cancel(*cache_);
  const epoch::Guard guard;
  Cache::Bucket& bucket = cache_->bucket(entry.hash());
  const std::lock_guard lock(bucket.lock);
  Entry* const old = Cache::find(bucket, entry.hash(), entry.key());
  if (!allows(entry, old, decide, context)) return Attempt::refused;
  if (old != nullptr && old->has(Entry::kQueued)) return Attempt::no_room;  // it comes first
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

/// With replaying_, after a write that is in the index and in the log: nothing may throw.
void Core::make_durable() noexcept try {
  replay();
  reclaim();
} catch (const std::exception&) {
}

}  // namespace perdix::detail::index::tips
