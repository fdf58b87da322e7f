// Writes while the pool is nearly full: they go into the index at once, so that a call that returns
// has got its space, and an erase gives its own back soon.
//
// The record comes first, as always: what a lookup or a scan sees is durable. If there is no space
// for the write, a second record cancels it. Between the two a crash makes the write, which has not
// returned; nobody has seen it.
#include <algorithm>

#include <perdix/error.h>

#include "index/tips/core.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {
namespace {

/// An entry that will cancel another one.
std::unique_ptr<Entry, DestroyEntry> make_cancel() {
  constexpr char kNumber[sizeof(std::uint64_t)] = {};
  return std::unique_ptr<Entry, DestroyEntry>(
      Entry::make(Operation::cancel, 0, {kNumber, sizeof kNumber}, {}));
}

}  // namespace

/// Whether the space that is left might not do for what waits in the logs. With replaying_, or
/// before anybody uses the index. Cost: a few lines for each chunk, once the pool can't grow.
void Core::find_out_whether_tight() const {
  constexpr std::uint64_t kEnough = std::uint64_t{8} << 20;
  const bool grows = pool_.max_size() - pool_.size() >= kEnough;
  tight_.store(!grows && pool_.size() - pool_.allocator().bytes_in_spans() < kEnough,
               std::memory_order_relaxed);
}

/// With the locks of bucket and ring, and replaying_; the record is durable.
Core::Attempt Core::apply_and_show(Cache::Bucket& bucket, Entry& entry, Entry* old) {
  // Lookups go to the index from here on, as scans do; so they see the write with them.
  if (old != nullptr) cache_->remove(bucket, *old);
  if (!apply(entry)) return Attempt::no_space;
  cache_->add(bucket, entry, nullptr);
  return Attempt::done;
}

Core::Attempt Core::write_through(Entry& entry, Decide decide, void* context) {
  const auto cancel = make_cancel();
  const std::lock_guard replaying(replaying_);
  replay();
  if (uno_.is_due() || logs_.is_due()) reclaim();
  if (!deferred_.empty() && entry.operation() == Operation::put) return Attempt::no_space;
  const epoch::Guard guard;
  Cache::Bucket& bucket = cache_->bucket(entry.hash());
  const std::lock_guard lock(bucket.lock);
  Entry* const old = Cache::find(bucket, entry.hash(), entry.key());
  if (!allows(entry, old, decide, context)) return Attempt::refused;
  OperationLogs::Ring& ring = logs_.ring();
  const std::lock_guard ring_lock(ring.lock);
  if (!logs_.has_room(ring, entry, *cancel) || !logs_.append(ring, entry)) return Attempt::no_room;
  if (old != nullptr && old->has(Entry::kQueued)) {
    show_and_queue(bucket, ring, entry, old);
    return Attempt::done;
  }
  cancel->set_key(&entry.number);
  Attempt attempt = Attempt::no_space;
  try {
    attempt = apply_and_show(bucket, entry, old);
  } catch (...) {
    logs_.append(ring, *cancel);
    throw;
  }
  if (attempt == Attempt::no_space) logs_.append(ring, *cancel);
  return attempt;
}

}  // namespace perdix::detail::index::tips
