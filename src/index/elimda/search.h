// Lookups: PM table, DRAM table, collecting logs, in this order (ElimDa paper, 3.4: reversed
// search).
//
// Pairs move in the opposite direction, so a pair may pass a lookup on its way. A lookup sees
// P-bucket and D-bucket at one moment (bucket.h). If neither has the key, the lookup searches the
// unit in flight and the log (collecting_log.h), and then validates: the bucket was not replaced
// and its D-bucket has no more pairs, and the log's `moves` has not changed. If that holds, a pair
// that existed during the whole lookup was in one place during the whole lookup: in the bucket, in
// flight or in the log. So the lookup would have found it. If validation fails, a writer has made
// progress, and the lookup begins again. So lookups are lock-free: they take no lock and wait for
// none.
//
// A larger set of logs may replace the one that a lookup has taken (more_logs.h). The lookup need
// not ask: what it finds was so when it took the set, which is within the call.
#pragma once

#include <array>

#include "index/common/groups.h"
#include "index/elimda/elimda.h"

namespace perdix::detail::index::elimda {

/// The signature of a key's hash. The word of a string holds it; that of an integer is hashed.
template <class K>
Signature WordIndex<K>::signature_of(Word key) const {
  if constexpr (Keys::kInline)
    return hash_of(key).signature();
  else
    return word_tag(key);
}

/// Returns the DRAM side of a bucket. Makes its segment warm first if it is cold (resumer.h).
template <class K>
Bucket& WordIndex<K>::bucket_of(Segment& segment, unsigned at) const {
  Bucket* bucket = segment.slot(at).bucket();
  if (bucket == nullptr) [[unlikely]] {
    warm(segment);
    bucket = segment.slot(at).bucket();
  }
  return *bucket;
}

/// Returns the bucket of a hash as it is now, and prefetches what a lookup will read of it.
template <class K>
[[gnu::always_inline]] inline auto WordIndex<K>::place_of(KeyHash hash) const -> Place {
  Segment& segment = dram_.segment_of(hash);
  const unsigned at = hash.bucket(shape_.buckets);
  Bucket& bucket = bucket_of(segment, at);
  bucket.prefetch_for_lookup(code_, hash.signature());
  return {&segment, at, &bucket};
}

/// Whether the bucket of a hash is still the one that place_of() returned.
template <class K>
bool WordIndex<K>::current(const Place& place, KeyHash hash) const {
  return &dram_.segment_of(hash) == place.segment &&
         place.segment->slot(place.at).bucket() == place.bucket;
}

template <class K>
[[gnu::always_inline]] inline auto WordIndex<K>::find_in_p(const Place& place, Key key,
                                                           KeyHash hash) const -> Found {
  Found found;
  const Bucket& bucket = *place.bucket;
  bucket.find_entry(code_, hash.signature(), [&](unsigned i, std::uint16_t entry) {
    if (code_.killed(entry)) return false;
    Pair& pair = p_pair(place, code_.slot(entry));
    if (!keys_.equal(pm::load(pair.key), key, hash.signature())) return false;
    const Word value = pm::load(pair.value);
    // Killed: so are all later pairs of the key, since the youngest is killed first.
    if (bucket.entry(i) != entry) return false;
    // A writer may be about to make this value durable. No caller may see the value before that.
    if (volatile_caches_ && bucket.has_unpersisted()) pm().persist(&pair.value, sizeof pair.value);
    found = {Where::p_bucket, i, &pair.value, value};
    return true;
  });
  return found;
}

template <class K>
[[gnu::always_inline]] inline auto WordIndex<K>::find_in_d(const Place& place, Key key,
                                                           KeyHash hash) const -> Found {
  Found found;
  const Bucket& bucket = *place.bucket;
  bucket.find_d(hash.signature(), [&](unsigned i) {
    if (!keys_.equal(bucket.d_key(i), key, hash.signature())) return false;
    const Word value = bucket.d_value(i);
    if (!bucket.d_live(i)) return false;
    found = {Where::d_bucket, i, nullptr, value};
    return true;
  });
  return found;
}

template <class K>
[[gnu::always_inline]] inline auto WordIndex<K>::find_in_bucket(const Place& place, Key key,
                                                                KeyHash hash) const -> Found {
  if (const Found found = find_in_p(place, key, hash)) return found;
  return find_in_d(place, key, hash);
}

/// Searches the unit that is on its way from the log to the DRAM table, if there is one. The unit
/// may have been freed and used again in the meantime: the caller validates `moves`.
template <class K>
[[gnu::always_inline]] inline auto WordIndex<K>::find_in_flight(const LogLine& line, Key key,
                                                                KeyHash hash) const -> Found {
  const std::uint32_t in_flight = line.in_flight.load(std::memory_order_acquire);
  if (in_flight == 0) return {};
  for (unsigned i = 0; i < shape_.unit_pairs; ++i) {
    const BackupRef ref = backup_.ref(in_flight - 1, i);
    if (!backup_.counts(ref)) continue;
    Pair& pair = backup_.pair(ref);
    if (!keys_.equal(pm::load(pair.key), key, hash.signature())) continue;
    const Word value = pm::load(pair.value);
    if (backup_.counts(ref)) return {Where::in_flight, i, &pair.value, value};
  }
  return {};
}

/// Searches the pairs of a log. The caller validates `moves`.
template <class K>
[[gnu::always_inline]] inline auto WordIndex<K>::find_in_log(CollectingLog log, Key key,
                                                             KeyHash hash) const -> Found {
  const LogLine& line = log.line();
  const LogLine::Print print = LogLine::print_of(hash.signature());
  const auto* prints = reinterpret_cast<const LogLine::Print*>(&line + 1);
  for (unsigned first = 0; first < shape_.unit_pairs; first += 8) {
    for (unsigned match = match_eight(prints + first, 0xffff, print); match != 0;
         match &= match - 1) {
      const unsigned i = first + static_cast<unsigned>(__builtin_ctz(match));
      Pair& pair = log.pairs()[i];
      if (i >= shape_.unit_pairs || line.print(i) != print) continue;
      if (!keys_.equal(pm::load(pair.key), key, hash.signature())) continue;
      const Word value = pm::load(pair.value);
      if (line.print(i) == print) return {Where::log, i, &pair.value, value};
    }
  }
  return {};
}

/// Searches the unit in flight first, since its pairs are older than those of the log.
template <class K>
auto WordIndex<K>::find_in_logs(CollectingLog log, Key key, KeyHash hash) const -> Found {
  if (const Found found = find_in_flight(log.line(), key, hash)) return found;
  return find_in_log(log, key, hash);
}

/// Returns the first pair of a key. `place` is the key's bucket as place_of() found it. The caller
/// is in an epoch::Guard.
template <class K>
auto WordIndex<K>::find_from(Place place, Key key, KeyHash hash) const -> Found {
  for (;; place = place_of(hash)) {
    const unsigned d_count = place.bucket->d_count();
    if (const Found found = find_in_bucket(place, key, hash)) return found;
    const LogSet* logs = logs_.set();
    if (logs == nullptr) return {};
    pm::on_step("elimda: a lookup goes on to the logs");
    const CollectingLog log = logs->log_of(hash);
    const LogLine& line = log.line();
    const std::uint32_t moves = line.moves.load(std::memory_order_acquire);
    const Found found = find_in_logs(log, key, hash);
    // Keeps the compiler from moving the vector comparison below the validation.
    std::atomic_signal_fence(std::memory_order_acquire);
    if (current(place, hash) && place.bucket->d_count() == d_count &&
        line.moves.load(std::memory_order_acquire) == moves) [[likely]]
      return found;
    pm::on_step("elimda: a lookup begins again");
  }
}

template <class K>
auto WordIndex<K>::find(Key key, KeyHash hash) const -> Found {
  return find_from(place_of(hash), key, hash);
}

template <class K>
std::optional<Word> WordIndex<K>::find_word(Key key) const {
  const Found found = find(key, hash_of(key));
  return found ? std::optional<Word>(found.value) : std::nullopt;
}

template <class K>
bool WordIndex<K>::find(Key key, std::uint64_t& value) const {
  const epoch::Guard guard;
  const Found found = find(key, hash_of(key));
  if (!found) return false;
  value = found.value;
  return true;
}

/// Locks the bucket of a hash and returns it. Its segment is warm, and not obsolete.
template <class K>
auto WordIndex<K>::lock_bucket(KeyHash hash) const -> Locked {
  for (;;) {
    Segment& segment = dram_.segment_of(hash);
    const unsigned at = hash.bucket(shape_.buckets);
    bucket_of(segment, at);  // warm before it is changed
    Slot& slot = segment.slot(at);
    std::unique_lock lock(slot);
    if (segment.obsolete.load(std::memory_order_acquire)) {
      pm::on_step("elimda: a writer meets a segment that was split");
      continue;
    }
    return {{&segment, at, slot.bucket()}, std::move(lock)};
  }
}

}  // namespace perdix::detail::index::elimda
