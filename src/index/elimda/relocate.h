// Room in full D-buckets: their pairs move to the P-bucket (ElimDa paper, 3.5), or they grow. Where
// pairs come straight to P-buckets, D-buckets have those that their full P-bucket has no room for.
//
// A pair is in the P-bucket, durably and for readers, before it leaves the backup log; a crash in
// between leaves it in both (E7). The opening finds such a pair by its words and removes one copy.
#pragma once

#include <algorithm>

#include <perdix/error.h>

#include "index/elimda/bits.h"
#include "index/elimda/smo.h"
#include "index/elimda/store.h"
#include "util/striped_counter.h"

namespace perdix::detail::index::elimda {

template <class K>
class Relocator {
 public:
  Relocator(Store<K>& store, Segmentation<K>& structure)
      : store_(store), segmentation_(structure) {}

  /// Makes room in a full D-bucket, by the first of these that applies: drops killed pairs; grows
  /// to `d_pairs` pairs; relocates its pairs to the P-bucket; grows to twice `d_pairs`; splits the
  /// segment. Growing before a split lets the other buckets of the segment fill up more, since the
  /// fullest bucket decides when a segment splits. If the segment can't be split, the D-bucket
  /// grows beyond these limits. Releases the lock; the caller locks the bucket again and checks
  /// whether there is room.
  void make_room(Locked locked, KeyHash hash) {
    const unsigned count = locked.bucket->d_count();
    if (locked.bucket->d_live_count() < count) {
      renew(locked);
      return;
    }
    if (count < store_.shape.d_pairs) return grow(locked);
    if (relocate(locked)) return;
    if (count < 2 * store_.shape.d_pairs) return grow(locked);
    Segment& segment = *locked.segment;
    const unsigned at = locked.at;
    locked.lock.unlock();
    try {
      if (segmentation_.split(segment, at)) return;
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space) throw;
      pm::on_step("elimda: no space for a split");
    }
    const Locked again = store_.lock_bucket(hash);
    if (again.bucket->d_full()) grow(again);
  }

  /// How often pairs were relocated.
  std::uint64_t relocations() const { return static_cast<std::uint64_t>(relocations_.sum()); }

  /// Makes room for recent pairs, and for D pairs if some were killed: replaces the bucket by one
  /// that has fingerprints for the recent pairs, and no killed ones. Returns it. Throws bad_alloc.
  Bucket& renew(const Locked& locked) {
    const Bucket& bucket = *locked.bucket;
    Bucket& made =
        *store_.new_bucket(&bucket, recent_pairs(locked), live_d_pairs(bucket), bucket.next_slot());
    store_.dram.replace(locked, made);
    return made;
  }

 private:
  /// Replaces a D-bucket by one with room for more pairs. make_room() says when; beyond its limits
  /// only where there is no space in PM for a split, or where too many keys hash alike for a split
  /// to help. Throws out_of_space at kMaxDramPairs, bad_alloc.
  void grow(const Locked& locked) {
    pm::on_step("elimda: a D-bucket grows");
    const unsigned count = locked.bucket->d_count();
    if (count >= Bucket::kMaxDramPairs)
      throw Error(Errc::out_of_space, "an ElimDa index has too many pairs in one D-bucket");
    const Bucket::Contents room = Bucket::room_for(store_.shape, count);
    store_.dram.replace(locked, *locked.bucket->make_larger(store_.arena, room.d_min, room.d_max));
  }

  std::vector<PSlot> recent_pairs(const Place& place) const {
    const Bucket& bucket = *place.bucket;
    std::vector<PSlot> slots;
    slots.reserve(bucket.recent_count());
    for (unsigned i = 0; i < bucket.recent_count(); ++i) {
      if (!bucket.recent_live(i)) continue;
      const unsigned slot = bucket.recent_slot(i);
      slots.push_back({static_cast<std::uint16_t>(slot),
                       store_.words.signature_of(pm::load(store_.table.pair(place, slot).key))});
    }
    return slots;
  }

  std::vector<DPair> live_d_pairs(const Bucket& bucket) const {
    std::vector<DPair> live;
    live.reserve(bucket.d_count());
    for (unsigned i = 0; i < bucket.d_count(); ++i) {
      if (!bucket.d_live(i)) continue;
      const Word key = bucket.d_key(i);
      live.push_back({{key, bucket.d_value(i)}, bucket.d_ref(i), store_.words.signature_of(key)});
    }
    return live;
  }

  /// Moves the oldest pairs of a D-bucket to its P-bucket, where media units matter to whole ones.
  /// Returns false, and has changed nothing, if the P-bucket has no room or there are too few pairs
  /// for a unit. Throws bad_alloc.
  bool relocate(const Locked& locked) {
    const Bucket& bucket = *locked.bucket;
    const unsigned first = store_.free_slot(bucket);
    if (first == store_.shape.p_pairs) return false;
    const std::vector<DPair> live = live_d_pairs(bucket);
    const unsigned most = std::min(
        {store_.shape.p_pairs - first, store_.shape.d_pairs, static_cast<unsigned>(live.size())});
    const unsigned count = store_.straight ? most : most - most % store_.shape.unit_pairs;
    if (count == 0) return false;
    const auto moved = std::span(live).first(count), left = std::span(live).subspan(count);
    for (const DPair& pair : moved) __builtin_prefetch(&store_.backup.word(pair.ref), 1);
    for (unsigned i = 0; i < count; i += 4)
      __builtin_prefetch(&store_.table.pair(locked, first + i), 1);
    std::vector<PSlot> slots = recent_pairs(locked);
    slots.reserve(slots.size() + count);
    for (unsigned i = 0; i < count; ++i)
      slots.push_back({static_cast<std::uint16_t>(first + i), moved[i].signature});
    Bucket* made = store_.new_bucket(&bucket, slots, left, first + count);
    write_to_p(locked, first, moved);
    pm::on_step("elimda: pairs are in the PM table and the backup log");
    store_.backup.clear(moved);
    store_.dram.replace(locked, *made);
    relocations_.add(1);
    return true;
  }

  /// Writes pairs to slots of a P-bucket that were never used, then sets their live bits, durably.
  void write_to_p(const Place& place, unsigned first, std::span<const DPair> pairs) {
    if (store_.straight)
      store_pairs(place, first, pairs);
    else
      stream_units(place, first, pairs);
    for (unsigned i = 0; i < pairs.size();) {
      const unsigned slot = first + i;
      const unsigned of_word =
          std::min<unsigned>(64 - slot % 64, static_cast<unsigned>(pairs.size()) - i);
      const std::uint64_t bits = (of_word == 64 ? 0 : std::uint64_t{1} << of_word) - 1;
      std::uint64_t& word = store_.table.live_word(place.segment->offset, place.at, slot);
      commit_bits(store_.pm(), {&word, bits << slot % 64, bits << slot % 64});
      i += of_word;
    }
  }

  void stream_units(const Place& place, unsigned first, std::span<const DPair> pairs) {
    for (unsigned from = 0; from < pairs.size(); from += store_.shape.unit_pairs) {
      std::array<Pair, Shape::kMaxUnitPairs> unit;
      for (unsigned i = 0; i < store_.shape.unit_pairs; ++i) unit[i] = pairs[from + i].pair;
      // Durable before they count, by the fence of the commit.
      store_.pm().stream(&store_.table.pair(place, first + from), unit.data(),
                         store_.shape.unit_bytes());
    }
  }

  void store_pairs(const Place& place, unsigned first, std::span<const DPair> pairs) {
    Pair* const to = &store_.table.pair(place, first);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      store_.pm().store(to[i].key, pairs[i].pair.key);
      store_.pm().store(to[i].value, pairs[i].pair.value);
    }
    // Durable before they count, by the fence of the commit.
    store_.pm().flush(to, pairs.size() * sizeof(Pair));
  }

  Store<K>& store_;
  Segmentation<K>& segmentation_;
  util::StripedCounter relocations_;
};

}  // namespace perdix::detail::index::elimda
