// How pairs move from layer to layer: a full collecting log is copied to the backup log and added
// to the DRAM table (ElimDa paper, 3.3), a full D-bucket is written to its P-bucket (3.5).
//
// A pair is in the new place, durably and for readers, before it leaves the old one; a crash in
// between leaves it in both (E7). The opening finds such a pair by its words and removes one copy.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "index/elimda/bits.h"
#include "index/elimda/elimda.h"

namespace perdix::detail::index::elimda {

/// Copies a full log to the backup log and empties it. The caller holds `lock`, the lock of the
/// log. Returns true with the log empty and still locked; `flush` then names the copy, which the
/// caller passes to finish_flush() once it has released the lock, or is empty if no pair of the log
/// counted. Returns false with the log unlocked and unchanged if it is retired, or an earlier flush
/// was in the way: this call has waited for it, or has completed it if it had failed half-way. Then
/// the caller begins again. Throws out_of_space, bad_alloc: then the log is unchanged.
template <class K>
bool WordIndex<K>::begin_flush(std::optional<Flush>& flush, std::unique_lock<util::SpinLock>& lock,
                               CollectingLog log) {
  LogLine& line = log.line();
  if (line.retired) {
    pm::on_step("elimda: a writer meets a log that is retired");
    lock.unlock();
    return false;
  }
  if (!line.flushing.try_lock()) {
    pm::on_step("elimda: a flush waits for another");
    lock.unlock();
    util::Backoff backoff;
    while (!line.flushing.try_lock()) backoff.pause();
    line.flushing.unlock();
    return false;
  }
  try {
    if (const std::uint32_t in_flight = line.in_flight.load(); in_flight != 0) {
      // An earlier flush failed half-way. Its pairs are older than those of the log, so they must
      // come into the DRAM table first.
      lock.unlock();
      add_all_to_dram({&line, in_flight - 1});
      line.flushing.unlock();
      return false;
    }
    flush = copy_to_backup(log);
    if (flush) return true;
  } catch (...) {
    line.flushing.unlock();
    throw;
  }
  line.flushing.unlock();  // no pair counted, so there is nothing to finish
  return true;
}

/// Copies the pairs of a log that count to a unit, which becomes visible as in flight, and empties
/// the log. Returns nothing if no pair counts; then there is no copy, but the log is emptied, too.
/// The caller holds `flushing`, and keeps others from appending.
template <class K>
auto WordIndex<K>::copy_to_backup(CollectingLog log) -> std::optional<Flush> {
  LogLine& line = log.line();
  unsigned counting = 0;
  for (unsigned i = 0; i < line.count; ++i) counting += !log.dead(i);
  if (counting == 0) {
    line.moves.fetch_add(1);  // the log's slots are about to be used again
    log.reset();
    return std::nullopt;
  }
  const Unit unit = backup_.take();
  backup_.count(unit, counting);
  const Pair* const from = log.pairs();
  std::array<Pair, Shape::kMaxUnitPairs> pairs;
  for (unsigned i = 0; i < shape_.unit_pairs; ++i) {
    const bool counts = i < line.count;
    pairs[i] = counts ? Pair{pm::load(from[i].key), pm::load(from[i].value)} : Pair{0, 0};
  }
  // stream() stores word by word: a late reader of the unit's earlier pairs may still read it.
  pm().stream(backup_.pairs(unit), pairs.data(), shape_.unit_bytes());
  pm().fence();  // before bits say that the pairs count
  const auto number = LogWord::unpack(pm::load(log.word())).number;
  for (unsigned w = 0; w < shape_.unit_words(); ++w) {
    UnitWord word{0, log.name(), number};
    for (unsigned i = w * UnitWord::kPairs; i < (w + 1) * UnitWord::kPairs && i < line.count; ++i) {
      if (!log.dead(i)) word.valid |= static_cast<std::uint16_t>(backup_.bit(i));
    }
    // The last of these stores is the commit: finish_copied_logs() finishes or undoes the copy.
    pm().publish(backup_.words(unit)[w], word.pack());
  }
  pm::on_step("elimda: a log was copied");
  line.in_flight.store(unit + 1, std::memory_order_release);
  line.moves.fetch_add(1);
  pm::on_step("elimda: a copy is in flight");
  log.reset();
  return Flush{&line, unit};
}

/// Adds the pairs of a copied log to the DRAM table. If that fails they stay in flight, and the
/// next flush of the log goes on where this one stopped. The error is not reported, since the
/// caller's own pair is in the log already.
template <class K>
void WordIndex<K>::finish_flush(const Flush& flush) noexcept {
  try {
    add_all_to_dram(flush);
  } catch (const std::exception&) {
    pm::on_step("elimda: a flush failed half-way");
  }
  flush.line->flushing.unlock();
}

/// Adds the pairs of a copied log to their D-buckets, in their order, and then ends the flight.
/// Begins behind the pairs that an earlier attempt has added (`flushed`). The caller holds
/// `flushing`. Throws out_of_space, bad_alloc: then some pairs are added, and all stay in flight.
template <class K>
void WordIndex<K>::add_all_to_dram(const Flush& flush) {
  prefetch_buckets(flush);
  for (std::uint16_t& i = flush.line->flushed; i < shape_.unit_pairs; ++i)
    add_to_dram(backup_.ref(flush.unit, i));
  pm::on_step("elimda: a copy is in the DRAM table");
  flush.line->flushed = 0;
  flush.line->moves.fetch_add(1);
  flush.line->in_flight.store(0, std::memory_order_release);
  backup_.unpin(flush.unit);
}

/// Prefetches what add_to_dram() will read and write. A heuristic: a wrong guess costs time only.
template <class K>
void WordIndex<K>::prefetch_buckets(const Flush& flush) const {
  if constexpr (Keys::kInline) {
    std::array<const Slot*, UnitWord::kPairs> slots{};
    const unsigned count = std::min<unsigned>(shape_.unit_pairs, slots.size());
    for (unsigned i = 0; i < count; ++i) {
      const KeyHash hash = hash_of(pm::load(backup_.pairs(flush.unit)[i].key));
      slots[i] = &dram_.segment_of(hash).slot(hash.bucket(shape_.buckets));
      __builtin_prefetch(slots[i], 1);
    }
    for (unsigned i = 0; i < count; ++i) {
      const Bucket* bucket = slots[i]->bucket();
      if (bucket != nullptr) bucket->prefetch_head_for_add();
    }
    for (unsigned i = 0; i < count; ++i) {
      const Bucket* bucket = slots[i]->bucket();
      if (bucket != nullptr) bucket->prefetch_pair_for_add();
    }
  }
}

/// Adds one pair of the backup log to its D-bucket, unless it was erased.
template <class K>
void WordIndex<K>::add_to_dram(BackupRef ref) {
  const Pair& pair = backup_.pair(ref);
  if (!backup_.counts(ref)) return;
  const KeyHash hash = hash_of_word(pm::load(pair.key));
  pm::on_step("elimda: a pair comes into the DRAM table");
  for (;;) {
    Locked locked = lock_bucket(hash);
    if (!backup_.counts(ref)) return;
    if (!locked.bucket->d_full()) {
      // An update of the pair holds the lock, too: so its value is not lost.
      locked.bucket->d_add({{pm::load(pair.key), pm::load(pair.value)}, ref, hash.signature()});
      return;
    }
    make_room(std::move(locked), hash);
  }
}

/// Makes room in a full D-bucket, by the first of these that applies: drops killed pairs; grows to
/// `d_pairs` pairs; relocates its pairs to the P-bucket; grows to twice `d_pairs`; splits the
/// segment. Growing before a split lets the other buckets of the segment fill up more, since the
/// fullest bucket decides when a segment splits. If the segment can't be split, the D-bucket grows
/// beyond these limits. Releases the lock; the caller locks the bucket again and checks whether
/// there is room.
template <class K>
void WordIndex<K>::make_room(Locked locked, KeyHash hash) {
  const unsigned count = locked.bucket->d_count();
  if (locked.bucket->d_live_count() < count) return replace_dead(locked);
  if (count < shape_.d_pairs) return grow(locked);
  if (relocate(locked)) return;
  if (count < 2 * shape_.d_pairs) return grow(locked);
  Segment& segment = *locked.segment;
  const unsigned at = locked.at;
  locked.lock.unlock();
  try {
    if (split(segment, at)) return;
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
    pm::on_step("elimda: no space for a split");
  }
  const Locked again = lock_bucket(hash);
  if (again.bucket->d_full()) grow(again);
}

/// Puts a D-bucket without its killed pairs in the place of one that has some.
template <class K>
void WordIndex<K>::replace_dead(const Locked& locked) {
  const std::vector<DPair> live = live_d_pairs(*locked.bucket);
  put_in_place(locked, *new_bucket(locked.bucket, {}, live, locked.bucket->units()));
}

/// Replaces a D-bucket by one with room for more pairs. make_room() says when; beyond its limits
/// only where there is no space in PM for a split, or where too many keys hash alike for a split to
/// help. Throws out_of_space at kMaxDramPairs, bad_alloc.
template <class K>
void WordIndex<K>::grow(const Locked& locked) {
  pm::on_step("elimda: a D-bucket grows");
  const unsigned count = locked.bucket->d_count();
  if (count >= Bucket::kMaxDramPairs)
    throw Error(Errc::out_of_space, "an ElimDa index has too many pairs in one D-bucket");
  const Bucket::Contents room = room_for(count);
  put_in_place(locked, *locked.bucket->make_larger(arena_, room.d_least, room.d_most));
}

/// How much room a D-bucket gets that holds `d_count` pairs: for one more, and for as many as fit
/// into the lines that this takes, up to the number of pairs at which make_room() takes its next
/// measure. From twice `d_pairs` on the room doubles.
template <class K>
Bucket::Contents WordIndex<K>::room_for(unsigned d_count) const {
  Bucket::Contents contents;
  contents.d_least = d_count + 1;
  contents.d_most = d_count < shape_.d_pairs ? shape_.d_pairs : 2 * shape_.d_pairs;
  if (d_count >= 2 * shape_.d_pairs)
    contents.d_least = std::min(2 * d_count, Bucket::kMaxDramPairs);
  return contents;
}

/// Makes the DRAM side of a bucket: with these D pairs, the P-bucket's pairs that `before` knows
/// and that were not killed, and those in `slots`. `units` of the P-bucket are in use. Throws
/// bad_alloc.
template <class K>
Bucket* WordIndex<K>::new_bucket(const Bucket* before, std::span<const PSlot> slots,
                                 std::span<const DPair> d_pairs, unsigned units) const {
  Bucket::Contents contents = room_for(static_cast<unsigned>(d_pairs.size()));
  contents.before = before;
  contents.slots = slots;
  contents.d_pairs = d_pairs;
  contents.units = units;
  return Bucket::make(arena_, code_, contents);
}

template <class K>
std::vector<DPair> WordIndex<K>::live_d_pairs(const Bucket& bucket) const {
  std::vector<DPair> live;
  live.reserve(bucket.d_count());
  for (unsigned i = 0; i < bucket.d_count(); ++i) {
    if (!bucket.d_live(i)) continue;
    const Word key = bucket.d_key(i);
    live.push_back({{key, bucket.d_value(i)}, bucket.d_ref(i), signature_of(key)});
  }
  return live;
}

/// Makes `made` the DRAM side of the locked bucket. Readers may keep the one before until their
/// Guards end.
template <class K>
void WordIndex<K>::put_in_place(const Locked& locked, Bucket& made) {
  pm::on_step("elimda: a bucket is replaced");
  locked.segment->slot(locked.at).set_bucket(&made);
  dram_.retire(*locked.bucket);
}

/// Moves the oldest pairs of a D-bucket to whole units of its P-bucket. Returns false, and has
/// changed nothing, if the P-bucket has no free unit or there are too few pairs for one. Throws
/// bad_alloc.
template <class K>
bool WordIndex<K>::relocate(const Locked& locked) {
  const Bucket& bucket = *locked.bucket;
  const unsigned first = bucket.units() * shape_.unit_pairs;
  if (first == shape_.p_pairs) return false;
  const std::vector<DPair> live = live_d_pairs(bucket);
  const unsigned most =
      std::min({shape_.p_pairs - first, shape_.d_pairs, static_cast<unsigned>(live.size())});
  const unsigned count = most / shape_.unit_pairs * shape_.unit_pairs;
  if (count == 0) return false;
  const auto moved = std::span(live).first(count), left = std::span(live).subspan(count);
  for (const DPair& pair : moved) __builtin_prefetch(&backup_.word(pair.ref), 1);
  for (unsigned i = 0; i < count; i += 4) __builtin_prefetch(&p_pair(locked, first + i), 1);
  std::vector<PSlot> slots;
  slots.reserve(count);
  for (unsigned i = 0; i < count; ++i)
    slots.push_back({static_cast<std::uint16_t>(first + i), moved[i].signature});
  Bucket* made = new_bucket(&bucket, slots, left, bucket.units() + count / shape_.unit_pairs);
  write_to_p(locked, first, moved);
  pm::on_step("elimda: pairs are in the PM table and the backup log");
  clear_in_backup(moved);
  put_in_place(locked, *made);
  relocations_.add(1);
  return true;
}

/// Writes pairs to slots of a P-bucket that were never used, then sets their live bits, durably.
template <class K>
void WordIndex<K>::write_to_p(const Place& place, unsigned first, std::span<const DPair> pairs) {
  for (unsigned from = 0; from < pairs.size(); from += shape_.unit_pairs) {
    std::array<Pair, Shape::kMaxUnitPairs> unit;
    for (unsigned i = 0; i < shape_.unit_pairs; ++i) unit[i] = pairs[from + i].pair;
    // Durable before they count, by the fence of the commit below.
    pm().stream(&p_pair(place, first + from), unit.data(), shape_.unit_bytes());
  }
  for (unsigned i = 0; i < pairs.size();) {
    const unsigned slot = first + i;
    const unsigned of_word =
        std::min<unsigned>(64 - slot % 64, static_cast<unsigned>(pairs.size()) - i);
    const std::uint64_t bits = (of_word == 64 ? 0 : std::uint64_t{1} << of_word) - 1;
    std::uint64_t& word = table_.live_word(place.segment->offset, place.at, slot);
    commit({&word, bits << slot % 64, bits << slot % 64});
    i += of_word;
  }
}

/// Clears the bits of pairs in the backup log, durably. The pairs are in the PM table and durable
/// there. A crash before this returns leaves both copies (E7). They stay equal until then, since
/// the caller holds the bucket's lock, or no other thread can reach the bucket yet.
template <class K>
void WordIndex<K>::clear_in_backup(std::span<const DPair> pairs) {
  constexpr std::size_t kPairsPerFence = 64;
  for (std::size_t from = 0; from < pairs.size(); from += kPairsPerFence)
    clear_some_in_backup(pairs.subspan(from, std::min(kPairsPerFence, pairs.size() - from)));
}

template <class K>
void WordIndex<K>::clear_some_in_backup(std::span<const DPair> pairs) {
  // A thread that is late in making the segment warm may clear some of them first, and then calls
  // forget() itself: drop_copy() in resumer.h. So each bit is cleared by a compare-and-swap, in
  // every domain, which tells whether this thread has cleared it; a commit would not.
  std::uint64_t cleared = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    std::uint64_t& word = backup_.word(pairs[i].ref);
    const bool changed = change_bits(pm(), {&word, backup_.bit(pairs[i].ref), 0});
    cleared |= std::uint64_t{changed} << i;
    pm().flush(&word, sizeof word);  // fenced below
  }
  // Before the units may be used again, and before one of the pairs is erased: it would come back.
  pm().fence();
  for (; cleared != 0; cleared &= cleared - 1)
    backup_.forget(pairs[static_cast<std::size_t>(std::countr_zero(cleared))].ref);
}

/// Moves all pairs of the collecting logs to the DRAM table. Called on opening, before other
/// threads use the index, where caches are volatile: there no pair may come into a log, and none
/// may be left in one. Throws out_of_space, bad_alloc; may be called again then.
template <class K>
void WordIndex<K>::drain_logs() {
  logs_.set()->for_each([&](CollectingLog log) {
    LogLine& line = log.line();
    const epoch::Guard guard;
    const std::lock_guard flushing(line.flushing);
    std::optional<Flush> flush;
    if (const std::uint32_t in_flight = line.in_flight.load(); in_flight != 0)
      flush = {&line, in_flight - 1};  // from an attempt that had no space
    else if (line.count > 0)
      flush = copy_to_backup(log);
    if (flush) add_all_to_dram(*flush);
  });
}

}  // namespace perdix::detail::index::elimda
