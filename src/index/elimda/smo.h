// Segment split (ElimDa paper, 3.5): when a D-bucket is full and its P-bucket has no free unit, two
// new segments take the pairs that count in the old one, without duplicates. If these are few,
// because the rest was duplicates or erased, one new segment of the same depth takes them.
//
// The buckets of the segment are locked during the split. Other segments are not affected, and
// readers continue in the old one. The commit is one store of a leader (E2). After it, and before
// another thread can reach the new segments, the pairs that moved into them are removed from the
// backup log.
#pragma once

#include <algorithm>
#include <bit>
#include <memory>

#include "index/elimda/elimda.h"

namespace perdix::detail::index::elimda {

template <class K>
struct WordIndex<K>::Half {
  pm::Offset offset = pm::kNull;
  Segment* segment = nullptr;
  util::Arena* arena = nullptr;
  std::vector<DPair> written;  ///< D pairs that its P-buckets have taken

  Half() = default;
  Half(const Half&) = delete;
  Half& operator=(const Half&) = delete;
  ~Half() {
    if (segment != nullptr) segment->release(*arena);
  }
};

template <class K>
bool WordIndex<K>::has_room(const Bucket& bucket) const {
  return !bucket.d_full() || bucket.d_count() < 2 * shape_.d_pairs ||
         (bucket.units() + 1) * shape_.unit_pairs <= shape_.p_pairs;
}

/// Splits a segment because of a bucket that is full. False if it may not be split further. Throws
/// out_of_space, bad_alloc, and nothing has happened.
template <class K>
bool WordIndex<K>::split(Segment& segment, unsigned full) {
  const std::lock_guard splitting(segment.splitting);
  for (unsigned i = 0; i < shape_.buckets; ++i) bucket_of(segment, i);
  std::vector<std::unique_lock<Slot>> locks;
  locks.reserve(shape_.buckets);
  for (unsigned i = 0; i < shape_.buckets; ++i) locks.emplace_back(segment.slot(i));
  if (segment.obsolete.load() || has_room(*segment.slot(full).bucket())) return true;
  std::vector<Items> items = gather(segment);
  std::size_t most = 0;
  for (const Items& of_bucket : items) most = std::max(most, of_bucket.size());
  const bool in_two = most > shape_.p_pairs / 4 * 3;
  if (in_two && !may_split(segment)) return false;
  split_into(segment, items, in_two);
  return true;
}

/// Whether the directory has a bit more for the segment, which it may get here. Keys that hash
/// alike can't make it grow without bound: a segment is at most so much deeper than the average
/// one.
template <class K>
bool WordIndex<K>::may_split(const Segment& segment) {
  constexpr unsigned kMaxExtraDepth = 8;
  const std::lock_guard lock(dram_.structure());
  if (segment.depth < dram_.depth()) return true;
  const auto average = static_cast<unsigned>(std::bit_width(segments_.load()) - 1);
  if (segment.depth >= PmTable::kMaxDepth || segment.depth >= average + kMaxExtraDepth)
    return false;
  table_.double_directory();
  dram_.double_directory();
  return true;
}

/// What counts in each bucket, the first pair of each key; the other ones of strings are killed.
template <class K>
auto WordIndex<K>::gather(Segment& segment) -> std::vector<Items> {
  std::vector<Items> items(shape_.buckets);
  for (unsigned i = 0; i < shape_.buckets; ++i) {
    const Place place{&segment, i, segment.slot(i).bucket()};
    items[i].reserve(place.bucket->entries() + place.bucket->d_count());
    gather_p(place, items[i]);
    gather_d(place, items[i]);
    remove_duplicates(place, items[i]);
  }
  return items;
}

/// In the order of slots, which is that in which the pairs came.
template <class K>
void WordIndex<K>::gather_p(const Place& place, Items& items) const {
  const std::uint64_t* live = table_.live_words(place.segment->offset, place.at);
  for (unsigned w = 0; w < shape_.live_words(); ++w) {
    for (std::uint64_t left = pm::load(live[w]); left != 0; left &= left - 1) {
      const unsigned slot = w * 64 + static_cast<unsigned>(std::countr_zero(left));
      const Pair& in_pm = p_pair(place, slot);
      const Pair pair{pm::load(in_pm.key), pm::load(in_pm.value)};
      items.push_back({pair, hash_of_word(pair.key), 0, slot, false});
    }
  }
}

template <class K>
void WordIndex<K>::gather_d(const Place& place, Items& items) const {
  for (unsigned i = 0; i < place.bucket->d_count(); ++i) {
    if (!place.bucket->d_live(i)) continue;
    const Pair pair{place.bucket->d_key(i), place.bucket->d_value(i)};
    items.push_back({pair, hash_of_word(pair.key), place.bucket->d_ref(i), i, true});
  }
}

/// Kills all but the first pair of each key, in PM too: they may have strings, or still be in the
/// backup log.
template <class K>
void WordIndex<K>::remove_duplicates(const Place& place, Items& items) {
  constexpr std::uint16_t kNone = 0xffff;
  std::vector<std::uint16_t> table(std::bit_ceil(2 * items.size() + 1), kNone);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    std::size_t at = item.hash.bits >> 32;
    bool first = true;
    for (at %= table.size(); first && table[at] != kNone; at = (at + 1) % table.size()) {
      const Item& other = items[table[at]];
      first = other.hash.bits != item.hash.bits ||
              !keys_.equal(other.pair.key, keys_.view(item.pair.key), item.hash.signature());
      if (!first) break;
    }
    if (first) {
      table[at] = static_cast<std::uint16_t>(kept);
      items[kept++] = item;
    } else {
      kill_duplicate(place, item);
    }
  }
  items.resize(kept);
}

template <class K>
void WordIndex<K>::kill_duplicate(const Place& place, const Item& item) {
  pm::on_step("elimda: a split removes a duplicate");
  if (item.in_d) return kill_d_pair(place, item.slot);
  place.bucket->find_entry(code_, item.hash.signature(), [&](unsigned i, std::uint16_t entry) {
    if (code_.killed(entry) || code_.slot(entry) != item.slot) return false;
    kill_p_entry(place, i);
    return true;
  });
}

template <class K>
void WordIndex<K>::split_into(Segment& segment, std::vector<Items>& items, bool in_two) {
  std::array<Half, 2> halves;
  alloc::Session session = pool_.allocator().session();
  const unsigned depth = segment.depth + (in_two ? 1 : 0);
  for (unsigned side = 0; side < (in_two ? 2 : 1); ++side) {
    Half& half = halves[side];
    const std::uint64_t prefix = in_two ? segment.prefix * 2 + side : segment.prefix;
    half.arena = &arena_;
    half.offset = session.reserve(shape_.segment_bytes());
    half.segment = Segment::make(arena_, shape_.buckets, half.offset, depth, prefix);
    table_.format_segment(half.offset, depth, prefix);
    for (unsigned at = 0; at < shape_.buckets; ++at) {
      Items of_half;
      std::copy_if(items[at].begin(), items[at].end(), std::back_inserter(of_half),
                   [&](const Item& item) { return !in_two || item.hash.bit(depth - 1) == side; });
      fill(half, at, of_half);
    }
    table_.flush_head(half.offset);
  }
  const std::lock_guard lock(dram_.structure());
  const auto unlink = [&] {
    pm::on_step("elimda: a segment is split in PM");
    for (Half& half : halves) clear_in_backup(half.written);
    pm::on_step("elimda: a segment was split");
    for (Half& half : halves) {
      if (half.segment != nullptr) dram_.link(*std::exchange(half.segment, nullptr));
    }
  };
  table_.replace(session, segment, halves[0].offset, halves[1].offset, unlink);  // the commit
  if (in_two) segments_.fetch_add(1);
  segment.obsolete.store(true, std::memory_order_release);
  dram_.retire(segment);
}

/// Fills a bucket of a new segment: P pairs, and D pairs as far as they fill the last unit.
/// Flushed.
template <class K>
void WordIndex<K>::fill(Half& half, unsigned at, std::span<const Item> items) {
  const auto d_begin =
      std::partition_point(items.begin(), items.end(), [](const Item& item) { return !item.in_d; });
  const auto in_p = static_cast<unsigned>(d_begin - items.begin());
  const auto in_d = static_cast<unsigned>(items.end() - d_begin);
  const unsigned units = (in_p + shape_.unit_pairs - 1) / shape_.unit_pairs;
  const unsigned count = std::min(units * shape_.unit_pairs, in_p + in_d);
  const Place place{half.segment, at, nullptr};
  std::vector<PSlot> slots;
  std::vector<Pair> pairs(units * shape_.unit_pairs);
  for (unsigned i = 0; i < count; ++i) {
    pairs[i] = items[i].pair;
    std::uint64_t& live = table_.live_word(half.offset, at, i);
    pm().store(live, pm::load(live) | PmTable::live_bit(i));
    slots.push_back({static_cast<std::uint16_t>(i), items[i].hash.signature()});
  }
  // Durable before the commit that links the segment, by its fence.
  if (count > 0) pm().stream(&p_pair(place, 0), pairs.data(), pairs.size() * sizeof(Pair));
  std::vector<DPair> d_pairs;
  for (const Item& item : items.subspan(in_p)) {
    auto& to = in_p + (&item - &items[in_p]) < count ? half.written : d_pairs;
    to.push_back({item.pair, item.ref, item.hash.signature()});
  }
  half.segment->slot(at).set_bucket(new_bucket(nullptr, slots, d_pairs, units));
}

// --- Joining -------------------------------------------------------------------------------------

/// The pool is full: gives back segments without pairs, and chunks of the backup log.
template <class K>
bool WordIndex<K>::reclaim_space() noexcept {
  bool any = false;
  try {
    while (join_empty_segments()) any = true;
    any |= backup_.free_unused_chunks();
  } catch (const std::exception&) {
    // There is no memory, or damage that a call of the user's will find.
  }
  return any;
}

template <class K>
bool WordIndex<K>::is_empty(Segment& segment) const {
  for (unsigned at = 0; at < shape_.buckets; ++at) {
    const Bucket& bucket = bucket_of(segment, at);
    if (bucket.d_live_count() != 0) return false;
    for (unsigned i = 0; i < bucket.entries(); ++i) {
      if (!code_.killed(bucket.entry(i))) return false;
    }
  }
  return true;
}

template <class K>
bool WordIndex<K>::join_empty_segments() {
  bool any = false;
  const epoch::Guard guard;
  dram_.for_each_segment([&](Segment& segment) {
    if (segment.depth > 0 && !segment.obsolete.load() && is_empty(segment)) any |= join(segment);
  });
  return any;
}

/// Joins an empty segment with the other half of the former segment, if that half was not split
/// further. Not if another thread splits one of the two.
template <class K>
bool WordIndex<K>::join(Segment& empty) {
  Segment& other = dram_.segment_of({(empty.prefix ^ 1) << (64 - empty.depth)});
  if (other.depth != empty.depth) return false;
  Segment& left = (empty.prefix & 1) == 0 ? empty : other;
  Segment& right = (empty.prefix & 1) == 0 ? other : empty;
  const std::unique_lock of_left(left.splitting, std::try_to_lock);
  const std::unique_lock of_right(right.splitting, std::try_to_lock);
  if (!of_left || !of_right) return false;
  std::vector<std::unique_lock<Slot>> locks;
  locks.reserve(2 * std::size_t{shape_.buckets});
  for (Segment* segment : {&left, &right}) {
    for (unsigned i = 0; i < shape_.buckets; ++i) {
      bucket_of(*segment, i);
      locks.emplace_back(segment->slot(i));
    }
  }
  if (left.obsolete.load() || right.obsolete.load() || !is_empty(empty)) return false;
  join_locked(left, other, empty);
  return true;
}

/// With all buckets of both locked. The joined segment has the buckets of the one that is kept.
template <class K>
void WordIndex<K>::join_locked(Segment& left, Segment& kept, Segment& freed) {
  Segment* joined =
      Segment::make(arena_, shape_.buckets, kept.offset, left.depth - 1, left.prefix / 2);
  for (unsigned i = 0; i < shape_.buckets; ++i) joined->slot(i).set_bucket(kept.slot(i).bucket());
  const std::lock_guard lock(dram_.structure());
  table_.join(left, kept, freed, [&] {  // behind the commit
    pm::on_step("elimda: segments are joined in PM");
    dram_.link(*joined);
  });
  segments_.fetch_sub(1);
  kept.gave_buckets = true;
  for (Segment* segment : {&kept, &freed}) {
    segment->obsolete.store(true, std::memory_order_release);
    dram_.retire(*segment);
  }
}

}  // namespace perdix::detail::index::elimda
