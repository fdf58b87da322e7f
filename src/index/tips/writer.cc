#include "index/tips/writer.h"

#include <mutex>

#include <fmt/format.h>

#include <perdix/error.h>

#include "epoch/guard.h"
#include "index/common/retry.h"

namespace perdix::detail::index::tips {

/// Makes a write visible whose record is durable, and queues it for replay. The caller holds the
/// locks of the bucket and the ring. `old` is the key's entry before, or null.
void Writer::show_and_queue(Cache::Bucket& bucket, OperationLogs::Ring& ring, Entry& entry,
                            Entry* old) {
  if (old != nullptr) old->supersede(entry.number());
  entry.set(Entry::kQueued);
  ring.queue.push(entry, changes_.key_kind());  // append() has made room
  cache_.add(bucket, entry, old);
}

/// Logs a write and makes it visible, if it is allowed and the ring has room.
Attempt Writer::log(Entry& entry, const Condition& condition) {
  const epoch::Guard guard;
  Cache::Bucket& bucket = cache_.bucket(entry.hash());
  const std::lock_guard lock(bucket.lock);
  Entry* const old = Cache::find(bucket, entry.hash(), entry.key());
  if (!condition.allows(entry, old, inspection_)) return Attempt::refused;
  OperationLogs::Ring* ring = nullptr;
  const auto ring_lock = framework_.logs.lock_ring(ring);
  if (!framework_.logs.append(*ring, entry)) return Attempt::no_room;
  show_and_queue(bucket, *ring, entry, old);
  return Attempt::done;
}

/// Claims the write's part of the reserve, then logs it. An erase needs none.
Attempt Writer::try_to_log(Entry& entry, const Condition& condition) {
  if (entry.operation() == Operation::erase) return log(entry, condition);
  // While earlier writes wait for space, no put joins them. An erase does, since it may free some.
  if (upkeep_.is_out_of_space()) return Attempt::no_reserve;
  Reserve::Admission admission(framework_.reserve, changes_.need_of(entry),
                               changes_.needs_are_alike());
  if (!admission) return Attempt::no_reserve;
  const Attempt attempt = log(entry, condition);
  if (attempt == Attempt::done) admission.keep();
  return attempt;
}

/// Makes a write for which there is no reserve.
Attempt Writer::write_through(Entry& entry, const Condition& condition) {
  return upkeep_.alone(
      [&](Replayer& replayer) { return through_.write(entry, condition, replayer); });
}

bool Writer::write(Operation operation, std::string_view key, std::string_view value,
                   const Condition& condition) {
  return retry_when_full(pool_, [&] {
    constexpr unsigned kMaxRounds = 1000;
    NewEntry entry = cache_.make_entry(operation, cache_.hash_of(key), key, value);
    for (unsigned round = 0; round < kMaxRounds; ++round) {
      Attempt attempt = try_to_log(*entry, condition);
      if (attempt == Attempt::no_reserve) attempt = write_through(*entry, condition);
      if (attempt == Attempt::refused) return false;
      if (attempt == Attempt::done) {
        entry.release();
        upkeep_.after_write();
        return true;
      }
      if (attempt == Attempt::no_space) break;
      upkeep_.make_room();
      if (upkeep_.is_out_of_space()) break;
    }
    throw Error(Errc::out_of_space,
                fmt::format("pool '{}' is full; erase something, or open it with a larger "
                            "max_size",
                            pool_.path().string()));
  });
}

}  // namespace perdix::detail::index::tips
