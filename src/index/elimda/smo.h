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
#include <exception>
#include <iterator>

#include "alloc/session.h"
#include "epoch/guard.h"
#include "index/elimda/changes.h"
#include "index/elimda/store.h"

namespace perdix::detail::index::elimda {

template <class K>
class Segmentation {
 public:
  Segmentation(Store<K>& store, PairChanges<K>& changes) : store_(store), changes_(changes) {}

  /// Splits a segment because of a bucket that is full. False if it may not be split further.
  /// Throws out_of_space, bad_alloc, and nothing has happened.
  bool split(Segment& segment, unsigned full) {
    const std::lock_guard splitting(segment.splitting);
    for (unsigned i = 0; i < store_.shape.buckets; ++i) store_.bucket_of(segment, i);
    std::vector<std::unique_lock<Slot>> locks;
    locks.reserve(store_.shape.buckets);
    for (unsigned i = 0; i < store_.shape.buckets; ++i) locks.emplace_back(segment.slot(i));
    if (segment.obsolete.load() || has_room(*segment.slot(full).bucket())) return true;
    std::vector<Items> items = gather(segment);
    std::size_t most = 0;
    for (const Items& of_bucket : items) most = std::max(most, of_bucket.size());
    const bool in_two = most > store_.shape.p_pairs / 4 * 3;
    if (in_two && !may_split(segment)) return false;
    split_into(segment, items, in_two);
    return true;
  }

  /// Gives back segments without pairs, and chunks of the backup log.
  bool give_back() noexcept {
    bool any = false;
    try {
      while (join_empty_segments()) any = true;
      any |= store_.backup.free_unused_chunks();
    } catch (const std::exception&) {
      // There is no memory, or damage that a call of the user's will find.
    }
    return any;
  }

 private:
  /// A pair on its way to another segment.
  struct Item {
    Pair pair;
    KeyHash hash;
    BackupRef ref = 0;
    unsigned slot = 0;  ///< in its P-bucket, or D-bucket
    bool in_d = false;
  };
  using Items = std::vector<Item>;

  /// One of the segments that take what counts in the old one.
  struct Half {
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

  bool has_room(const Bucket& bucket) const {
    return !bucket.d_full() || bucket.d_count() < 2 * store_.shape.d_pairs ||
           store_.free_slot(bucket) < store_.shape.p_pairs;
  }

  /// Whether the directory has a bit more for the segment, which it may get here. Keys that hash
  /// alike can't make it grow without bound: a segment is at most so much deeper than the average
  /// one.
  bool may_split(const Segment& segment) {
    constexpr unsigned kMaxExtraDepth = 8;
    const std::lock_guard lock(store_.dram.structure());
    if (segment.depth < store_.dram.depth()) return true;
    const auto average = static_cast<unsigned>(std::bit_width(store_.dram.segments()) - 1);
    if (segment.depth >= PmTable::kMaxDepth || segment.depth >= average + kMaxExtraDepth)
      return false;
    store_.table.double_directory();
    store_.dram.double_directory();
    return true;
  }

  /// What counts in each bucket, the first pair of each key; the other ones of strings are killed.
  std::vector<Items> gather(Segment& segment) {
    std::vector<Items> items(store_.shape.buckets);
    for (unsigned i = 0; i < store_.shape.buckets; ++i) {
      const Place place{&segment, i, segment.slot(i).bucket()};
      items[i].reserve(place.bucket->next_slot() + place.bucket->d_count());
      gather_p(place, items[i]);
      gather_d(place, items[i]);
      remove_duplicates(place, items[i]);
    }
    return items;
  }

  /// In the order of slots, which is that in which the pairs came.
  void gather_p(const Place& place, Items& items) const {
    store_.table.for_each_live(place, [&](unsigned slot) {
      const Pair pair = load(store_.table.pair(place, slot));
      items.push_back({pair, store_.words.hash_of_word(pair.key), 0, slot, false});
    });
  }

  void gather_d(const Place& place, Items& items) const {
    for (unsigned i = 0; i < place.bucket->d_count(); ++i) {
      if (!place.bucket->d_live(i)) continue;
      const Pair pair{place.bucket->d_key(i), place.bucket->d_value(i)};
      items.push_back({pair, store_.words.hash_of_word(pair.key), place.bucket->d_ref(i), i, true});
    }
  }

  /// Kills all but the first pair of each key, in PM too: they may have strings, or still be in the
  /// backup log.
  void remove_duplicates(const Place& place, Items& items) {
    constexpr std::uint16_t kNone = 0xffff;
    std::vector<std::uint16_t> table(std::bit_ceil(2 * items.size() + 1), kNone);
    const std::size_t mask = table.size() - 1;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Item& item = items[i];
      std::size_t at = item.hash.bits >> 32;
      bool first = true;
      for (at &= mask; first && table[at] != kNone; at = (at + 1) & mask) {
        const Item& other = items[table[at]];
        first = other.hash.bits != item.hash.bits ||
                !store_.words.keys().equal(other.pair.key, store_.words.keys().view(item.pair.key),
                                           item.hash.signature());
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

  void kill_duplicate(const Place& place, const Item& item) {
    pm::on_step("elimda: a split removes a duplicate");
    if (item.in_d) return changes_.kill_d_pair(place, item.slot);
    place.bucket->find_entry(
        store_.code, item.hash.signature(), [&](unsigned i, std::uint16_t entry) {
          if (store_.code.killed(entry) || store_.code.slot(entry) != item.slot) return false;
          changes_.kill_p_entry(place, i);
          return true;
        });
  }

  void split_into(Segment& segment, std::vector<Items>& items, bool in_two) {
    std::array<Half, 2> halves;
    alloc::Session session = store_.pool.allocator().session();
    const unsigned depth = segment.depth + (in_two ? 1 : 0);
    for (unsigned side = 0; side < (in_two ? 2 : 1); ++side) {
      Half& half = halves[side];
      const std::uint64_t prefix = in_two ? segment.prefix * 2 + side : segment.prefix;
      half.arena = &store_.arena;
      half.offset = session.reserve(store_.shape.segment_bytes());
      half.segment = Segment::make(store_.arena, store_.shape.buckets, half.offset, depth, prefix);
      store_.table.format_segment(half.offset, depth, prefix);
      for (unsigned at = 0; at < store_.shape.buckets; ++at) {
        Items of_half;
        of_half.reserve(items[at].size());
        std::copy_if(items[at].begin(), items[at].end(), std::back_inserter(of_half),
                     [&](const Item& item) { return !in_two || item.hash.bit(depth - 1) == side; });
        fill(half, at, of_half);
      }
      store_.table.flush_head(half.offset);
    }
    const std::lock_guard lock(store_.dram.structure());
    const auto unlink = [&] {
      pm::on_step("elimda: a segment is split in PM");
      for (Half& half : halves) store_.backup.clear(half.written);
      pm::on_step("elimda: a segment was split");
      for (Half& half : halves) {
        if (half.segment != nullptr) store_.dram.link(*std::exchange(half.segment, nullptr));
      }
    };
    // The commit.
    store_.table.replace(session, segment, halves[0].offset, halves[1].offset, unlink);
    if (in_two) store_.dram.count_segments(1);
    segment.obsolete.store(true, std::memory_order_release);
    store_.dram.retire(segment);
  }

  /// Fills a bucket of a new segment: P pairs, and D pairs as far as they fill the last unit, or if
  /// units do not matter the P-bucket. Flushed.
  void fill(Half& half, unsigned at, std::span<const Item> items) {
    const auto d_begin = std::partition_point(items.begin(), items.end(),
                                              [](const Item& item) { return !item.in_d; });
    const auto in_p = static_cast<unsigned>(d_begin - items.begin());
    const auto in_d = static_cast<unsigned>(items.end() - d_begin);
    const unsigned room = store_.straight ? store_.shape.p_pairs : store_.shape.unit_from(in_p);
    const unsigned count = std::min(room, in_p + in_d);
    const Place place{half.segment, at, nullptr};
    std::vector<PSlot> slots;
    slots.reserve(count);
    std::vector<Pair> pairs(store_.shape.unit_from(count));
    for (unsigned i = 0; i < count; ++i) {
      pairs[i] = items[i].pair;
      std::uint64_t& live = store_.table.live_word(half.offset, at, i);
      store_.pm().store(live, pm::load(live) | PmTable::live_bit(i));
      slots.push_back({static_cast<std::uint16_t>(i), items[i].hash.signature()});
    }
    // Durable before the commit that links the segment, by its fence.
    if (count > 0)
      store_.pm().stream(&store_.table.pair(place, 0), pairs.data(), pairs.size() * sizeof(Pair));
    std::vector<DPair> d_pairs;
    for (const Item& item : items.subspan(in_p)) {
      auto& to = in_p + (&item - &items[in_p]) < count ? half.written : d_pairs;
      to.push_back({item.pair, item.ref, item.hash.signature()});
    }
    half.segment->slot(at).set_bucket(store_.new_bucket(nullptr, slots, d_pairs, count));
  }

  // --- Joining ---

  bool is_empty(Segment& segment) const {
    for (unsigned at = 0; at < store_.shape.buckets; ++at) {
      const Bucket& bucket = store_.bucket_of(segment, at);
      if (bucket.d_live_count() != 0) return false;
      for (unsigned i = 0; i < bucket.entries(); ++i) {
        if (!store_.code.killed(bucket.entry(i))) return false;
      }
      for (unsigned i = 0; i < bucket.recent_count(); ++i) {
        if (bucket.recent_live(i)) return false;
      }
    }
    return true;
  }

  bool join_empty_segments() {
    bool any = false;
    const epoch::Guard guard;
    store_.dram.for_each_segment([&](Segment& segment) {
      if (segment.depth > 0 && !segment.obsolete.load() && is_empty(segment)) any |= join(segment);
    });
    return any;
  }

  /// Joins an empty segment with the other half of the former segment, if that half was not split
  /// further. Not if another thread splits one of the two.
  bool join(Segment& empty) {
    Segment& other = store_.dram.segment_of({(empty.prefix ^ 1) << (64 - empty.depth)});
    if (other.depth != empty.depth) return false;
    Segment& left = (empty.prefix & 1) == 0 ? empty : other;
    Segment& right = (empty.prefix & 1) == 0 ? other : empty;
    const std::unique_lock of_left(left.splitting, std::try_to_lock);
    const std::unique_lock of_right(right.splitting, std::try_to_lock);
    if (!of_left || !of_right) return false;
    std::vector<std::unique_lock<Slot>> locks;
    locks.reserve(2 * std::size_t{store_.shape.buckets});
    for (Segment* segment : {&left, &right}) {
      for (unsigned i = 0; i < store_.shape.buckets; ++i) {
        store_.bucket_of(*segment, i);
        locks.emplace_back(segment->slot(i));
      }
    }
    if (left.obsolete.load() || right.obsolete.load() || !is_empty(empty)) return false;
    join_locked(left, other, empty);
    return true;
  }

  /// With all buckets of both locked. The joined segment has the buckets of the one that is kept.
  void join_locked(Segment& left, Segment& kept, Segment& freed) {
    Segment* joined = Segment::make(store_.arena, store_.shape.buckets, kept.offset, left.depth - 1,
                                    left.prefix / 2);
    for (unsigned i = 0; i < store_.shape.buckets; ++i)
      joined->slot(i).set_bucket(kept.slot(i).bucket());
    const std::lock_guard lock(store_.dram.structure());
    store_.table.join(left, kept, freed, [&] {  // behind the commit
      pm::on_step("elimda: segments are joined in PM");
      store_.dram.link(*joined);
    });
    store_.dram.count_segments(-1);
    kept.gave_buckets = true;
    for (Segment* segment : {&kept, &freed}) {
      segment->obsolete.store(true, std::memory_order_release);
      store_.dram.retire(*segment);
    }
  }

  Store<K>& store_;
  PairChanges<K>& changes_;
};

}  // namespace perdix::detail::index::elimda
