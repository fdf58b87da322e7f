// Lookups and writes. A write looks the key up, appends its record to a ring (operation_log.h), and
// puts its entry into the cache, all with the lock of the key's bucket. If it gets no room or no
// space for its replay, write() replays (replay.cc) or writes through (write_through.cc).
#include "index/tips/core.h"

#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "epoch/guard.h"
#include "index/common/retry.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

Core::KeyWord::KeyWord(std::string_view key, Kind kind) {
  if (kind == Kind::u64) {
    std::memcpy(&word_, key.data(), sizeof word_);
    return;
  }
  char* bytes = small_;
  if (sizeof(Bytes) + key.size() > kSmall) {
    large_ = std::make_unique_for_overwrite<char[]>(sizeof(Bytes) + key.size());
    bytes = large_.get();
  }
  new (bytes) Bytes{key.size()};
  if (!key.empty()) std::memcpy(bytes + sizeof(Bytes), key.data(), key.size());
  word_ = reinterpret_cast<Word>(bytes);
}

/// Whether decide() allows the write, given the value that the key has now. `old` is the key's
/// entry in the cache, or null. The caller holds the bucket's lock.
bool Core::allows(const Entry& entry, const Entry* old, Decide decide, void* context) const {
  if (decide == nullptr) return true;
  const bool erases = entry.operation() == Operation::erase;
  const auto says = [&](Found found) { return (found || !erases) && decide(context, found); };
  if (old != nullptr) {
    return says(old->operation() == Operation::erase ? Found() : Found(old->value()));
  }
  bool allowed = false;
  const bool there =
      find_in_index(entry.key(), [&](Word value) { allowed = says(value_view(value)); });
  report_index();
  return there ? allowed : says(std::nullopt);
}

/// Makes a write visible whose record is durable, and queues it for replay. The caller holds the
/// locks of the bucket and the ring. `old` is the key's entry before, or null.
void Core::show_and_queue(Cache::Bucket& bucket, OperationLogs::Ring& ring, Entry& entry,
                          Entry* old) {
  if (old != nullptr) old->supersede(entry.number());
  entry.set(Entry::kQueued);
  ring.queue.push_back(&entry);  // append() has made room
  cache_->add(bucket, entry, old);
}

/// The blocks that the replay of an entry may take from the pool.
Need Core::need_of(const Entry& entry) const {
  Need need;
  if (entry.operation() != Operation::put) return need;
  if (kinds_.key == Kind::bytes) need.add(sizeof(Bytes) + entry.key().size(), 1);
  if (kinds_.value == Kind::bytes) need.add(sizeof(Bytes) + entry.value().size(), 1);
  // A separator has the length of a key and a byte more than the key.
  const std::uint64_t separator =
      kinds_.key == Kind::bytes ? sizeof(Bytes) + entry.key().size() + 1 : 0;
  for (const TakenNodes& nodes : plugin_.facts().put_takes)
    if (nodes.count > 0) need.add(nodes.bytes + (nodes.with_key ? separator : 0), nodes.count);
  return need;
}

/// Makes one attempt at a write: claims its part of the reserve, then logs it. An erase needs none.
Core::Attempt Core::try_write(Entry& entry, Decide decide, void* context) {
  if (entry.operation() == Operation::erase) return log_write(entry, decide, context);
  // While earlier writes wait for space, no put joins them. An erase does, since it may free some.
  if (out_of_space_.load(std::memory_order_relaxed)) return Attempt::no_reserve;
  Reserve::Admission admission(reserve_, need_of(entry));
  if (admission.answer() == Reserve::Answer::wait) return Attempt::no_room;
  if (admission.answer() == Reserve::Answer::no_space) return Attempt::no_reserve;
  const Attempt attempt = log_write(entry, decide, context);
  if (attempt == Attempt::done) admission.keep();
  return attempt;
}

/// Logs a write and makes it visible, if decide() allows it and the ring has room. Throws
/// out_of_space, bad_alloc, corrupt: then nothing has happened.
Core::Attempt Core::log_write(Entry& entry, Decide decide, void* context) {
  const epoch::Guard guard;
  Cache::Bucket& bucket = cache_->bucket(entry.hash());
  const std::lock_guard lock(bucket.lock);
  Entry* const old = Cache::find(bucket, entry.hash(), entry.key());
  if (!allows(entry, old, decide, context)) return Attempt::refused;
  OperationLogs::Ring* ring = nullptr;
  const auto ring_lock = logs_.lock_ring(ring);
  if (!logs_.append(*ring, entry)) return Attempt::no_room;
  show_and_queue(bucket, *ring, entry, old);
  return Attempt::done;
}

bool Core::write(Operation operation, std::string_view key, std::string_view value, Decide decide,
                 void* context) {
  return retry_when_full(pool_, [&] {
    constexpr unsigned kMaxRounds = 1000;
    NewEntry entry = cache_->make_entry(operation, hash_of(key), key, value);
    for (unsigned round = 0; round < kMaxRounds; ++round) {
      Attempt attempt = try_write(*entry, decide, context);
      if (attempt == Attempt::no_reserve) attempt = write_through(*entry, decide, context);
      if (attempt == Attempt::refused) return false;
      if (attempt == Attempt::done) {
        entry.release();
        after_write();
        return true;
      }
      if (attempt == Attempt::no_space) break;
      replay_all();
      if (out_of_space_.load(std::memory_order_relaxed)) break;
    }
    throw Error(Errc::out_of_space,
                fmt::format("pool '{}' is full; erase something, or open it with a larger "
                            "max_size",
                            pool_.path().string()));
  });
}

/// Asks the background thread for a replay. Where a probe stops that thread, the writer itself
/// replays now and then. An error of the replay is dropped, since the write has happened: the next
/// call that needs a replay meets the error, too.
void Core::after_write() noexcept try {
  const std::uint64_t backlog = backlog_.fetch_add(1, std::memory_order_relaxed) + 1;
  constexpr std::uint64_t kMaxBacklog = 1024;
  if (!requested_.load(std::memory_order_relaxed) && !requested_.exchange(true)) job_->request();
  if (!pm::background_work() && backlog >= pm::limit("tips: writes before a replay", kMaxBacklog))
    catch_up();
} catch (const std::exception&) {
}

}  // namespace perdix::detail::index::tips
