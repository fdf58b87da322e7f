// The parts of a table alone, over a pool in which no table is open: what each promises to those
// that are made of it.
#include <algorithm>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "epoch/guard.h"
#include "index/cceh/check.h"
#include "index/cceh/for_each.h"
#include "index/cceh/pair_writer.h"
#include "index/cceh/recovery.h"
#include "index/cceh/search.h"
#include "index/cceh/smo.h"
#include "index/common/test_pool.h"
#include "pool/index_handle.h"

namespace perdix::detail::index::cceh {
namespace {

using Number = std::uint64_t;

constexpr Shape kEightBuckets{8, 3, 7};  // a seed, so that each run does the same

/// A root block with a directory and one segment, and the parts over it.
template <class K>
class Parts : public testing::Test {
 protected:
  class EmptyPool : public TestPool<EmptyPool> {};

  pool::PoolCore& core() { return pool_.core(); }
  const Segments<K>& segments() { return search_.segments(); }
  Router& router() { return search_.router(); }

  static K key(Number number) {
    if constexpr (std::is_same_v<K, Number>) {
      return number;
    } else {
      return number == 0 ? std::string() : "key " + std::to_string(number);
    }
  }

  /// Adds a key without splitting. Returns false if there is no room.
  bool add(Number number) {
    const epoch::Guard guard;
    const K added = key(number);
    const KeyHash hash = segments().hash_of(added);
    LockedSegment locked;
    search_.lock(locked, added, hash);
    const FoundSlots slots = segments().search(locked.entry, locked.range, added, hash);
    if (slots.free == nullptr) return false;
    writer_.add(*slots.free, added, NewValue(~number), hash.tag());
    pairs_.add();
    return true;
  }

  /// Adds keys, with splits.
  void fill(Number begin, Number end) {
    for (Number number = begin; number < end; ++number) {
      while (!add(number)) make_room(number);
    }
  }

  void make_room(Number number) {
    const epoch::Guard guard;
    const KeyHash hash = segments().hash_of(key(number));
    LockedSegment locked;
    search_.lock(locked, key(number), hash);
    (void)structure_.make_room(locked, hash, nullptr);
  }

  Pair* find(Number number) {
    const KeyHash hash = segments().hash_of(key(number));
    return segments().find(search_.see(key(number), hash).entry, key(number), hash);
  }

  void expect_sound() {
    for (const std::string& problem : Survey<K>(search_, pairs_).check().problems)
      ADD_FAILURE() << problem;
  }

  EmptyPool pool_;
  pool::IndexHandle handle_ = core().open_index("parts", "cceh", kKindOf<K>, Kind::u64);
  Root& root_ = open_root(core(), handle_.root(), kEightBuckets);
  PairCount pairs_;
  SegmentSearch<K> search_{core(), root_, shape_of(core(), root_), Kind::u64};
  PairWriter<K> writer_{core(), root_, segments().values()};
  SegmentStructure<K> structure_{search_, writer_};
};

using NumberParts = Parts<Number>;
using StringParts = Parts<std::string>;

TEST_F(NumberParts, ASlotCountsInTheHalfOfItsHash) {
  const HashRange all{};
  EXPECT_FALSE(segments().counts(0, all));
  for (Number number = 1; number < 100; ++number) {
    const unsigned side = segments().hash_of(number).bit(0);
    EXPECT_TRUE(segments().counts(number, all));
    EXPECT_TRUE(segments().counts(number, all.half(side)));
    EXPECT_FALSE(segments().counts(number, all.half(1 - side)));
    EXPECT_TRUE(segments().in_part(number, all, all.half(side)));
    EXPECT_FALSE(segments().in_part(number, all, all.half(1 - side)));
  }
}

TEST_F(NumberParts, APairGetsASlotOfItsBucketsOrNone) {
  const epoch::Guard guard;
  Number number = 1;
  while (add(number)) ++number;
  const SeenSegment seen = router().look({0});
  for (Number added = 1; added < number; ++added) {
    const Pair* pair = find(added);
    ASSERT_NE(pair, nullptr);
    const auto slot = static_cast<unsigned>(pair - segments().slots_of(seen.entry));
    const auto buckets = segments().hash_of(added).buckets_of(kEightBuckets.buckets);
    EXPECT_NE(buckets[0], buckets[1]);
    EXPECT_TRUE(slot / kBucketPairs == buckets[0] || slot / kBucketPairs == buckets[1]);
  }
  EXPECT_EQ(find(number), nullptr);
  const FoundSlots slots =
      segments().search(seen.entry, seen.range, number, segments().hash_of(number));
  EXPECT_EQ(slots.free_in_overflow, nullptr);
  // A pair that a split has moved is a free slot of the half that it has left.
  const HashRange half = seen.range.half(segments().hash_of(number).bit(0));
  EXPECT_NE(segments().search(seen.entry, half, number, segments().hash_of(number)).free, nullptr);
}

TEST_F(StringParts, ChangesOfAPairOwnItsBlocks) {
  const epoch::Guard guard;
  const std::uint64_t before = pool_.allocated();
  for (const Number number : {0, 1}) {
    ASSERT_TRUE(add(number));
    Pair* const pair = find(number);
    ASSERT_NE(pair, nullptr);
    EXPECT_EQ(pair == &root_.zero, number == 0) << "H7";
    EXPECT_EQ(pair->value, ~number);
    EXPECT_EQ(pool_.allocated() == before, number == 0) << "only the empty string has no block";
    writer_.replace(*pair, NewValue(Number{5}));
    EXPECT_EQ(pair->value, 5u);
    writer_.remove(*pair);
    EXPECT_EQ(pair->key, 0u);
    EXPECT_EQ(find(number), nullptr);
    EXPECT_EQ(pool_.allocated(), before);
  }
}

TEST_F(NumberParts, WhatWasSeenIsValidUntilItsLatchWasHeld) {
  const epoch::Guard guard;
  const SeenSegment seen = router().look({0});
  EXPECT_EQ(seen.range, HashRange());
  EXPECT_TRUE(seen.valid());
  {
    LockedSegment locked;
    ASSERT_TRUE(locked.try_lock(seen));
    EXPECT_FALSE(seen.valid());
    const SeenSegment held = router().held({~Number{0}});
    EXPECT_EQ(held.entry, seen.entry);
    EXPECT_EQ(held.range, seen.range);
    EXPECT_EQ(held.latch, seen.latch);
  }
  EXPECT_FALSE(LockedSegment().try_lock(seen));
  EXPECT_EQ(router().look_at_root().entry.offset(), pm::kNull);
}

TEST_F(NumberParts, TheDirectoryLeadsToTheHalvesOfASplit) {
  const epoch::Guard guard;
  Directory& directory = router().directory();
  EXPECT_EQ(directory.depth(), 0u);
  const SeenSegment whole = router().look({0});
  const KeyHash lower{0}, upper{~Number{0}};
  directory.grow(0);
  directory.grow(0);
  EXPECT_EQ(directory.depth(), 1u) << "another thread was first";
  EXPECT_EQ(router().look(upper).entry, whole.entry);
  alloc::Session session = core().allocator().session();
  const SegmentBuilder<Number> builder(segments());
  const Entry right = builder.make_part(session, whole, whole.range.half(1), nullptr);
  const Entry left = whole.entry.with_depth(1);
  directory.commit_change(session, whole.range, left, right);
  EXPECT_EQ(router().look(lower).entry, left);
  EXPECT_EQ(router().look(upper).entry, right);
  EXPECT_EQ(router().look(upper).range, whole.range.half(1));
  for (const Number entry : {0, 1}) EXPECT_TRUE(directory.sound_entry(entry));
  expect_sound();
}

TEST_F(NumberParts, ANewSegmentHasThePairsOfItsPartAndOfABuffer) {
  const epoch::Guard guard;
  Number next = 1;
  while (add(next)) ++next;
  WriteBuffer<BufferShape> buffer;
  std::set<Number> wanted;
  const SeenSegment seen = router().look({0});
  const HashRange part = seen.range.half(1);
  for (Number number = 1; number < 2 * next; ++number) {
    const KeyHash hash = segments().hash_of(number);
    if (number >= next) buffer.push(number, ~number, hash.tag());
    if (hash.bit(0) == 1) wanted.insert(number);
  }
  alloc::Session session = core().allocator().session();
  const SegmentBuilder<Number> builder(segments());
  const Entry made = builder.make_part(session, seen, part, &buffer);
  std::set<Number> found;
  segments().for_each_slot(made, [&](const Pair& pair) {
    if (pair.key == 0) return false;
    EXPECT_EQ(pair.value, ~pair.key);
    EXPECT_TRUE(found.insert(pair.key).second);
    return false;
  });
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(made.crowded(), segments().overflow_reference(made).offset != pm::kNull);
}

TEST_F(NumberParts, APairMovesToItsOtherBucketAndLeavesItsSlotFree) {
  const epoch::Guard guard;
  ASSERT_TRUE(add(1));
  Pair* const from = find(1);
  const SeenSegment seen = router().look({0});
  const NearSlots near = segments().near(seen.entry, segments().hash_of(1));
  Pair* const to = &near[from == &near[0] ? kBucketPairs : 0];
  writer_.move(*from, *to);
  EXPECT_EQ(find(1), to);
  EXPECT_EQ(to->value, ~Number{1});
  EXPECT_EQ(from->key, 0u);
  expect_sound();
}

TEST_F(NumberParts, AMergeInPlaceTakesAllPairsOrNone) {
  const epoch::Guard guard;
  SegmentBuffers<Number> buffers(segments(), router(), pairs_, Technique::b);
  const SegmentHomes<Number> homes(segments(), router(), buffers);
  const SeenSegment seen = router().look({0});
  WriteBuffer<BufferShape> buffer;
  for (Number number = 1; number <= 4; ++number) buffer.push(number, ~number, homes.tag(number));
  unsigned ended = 0;
  EXPECT_FALSE(homes.has_word(seen, 1));
  EXPECT_TRUE(homes.merge_in_place(seen, buffer, [&] { ++ended; }));
  EXPECT_EQ(ended, 1u);
  for (Number number = 1; number <= 4; ++number) {
    EXPECT_TRUE(homes.has_word(seen, number));
    EXPECT_EQ(find(number)->value, ~number);
  }
  buffer.clear();
  for (Number number = 5; number < 45; ++number) buffer.push(number, ~number, homes.tag(number));
  EXPECT_FALSE(homes.merge_in_place(seen, buffer, [&] { ++ended; }));
  EXPECT_EQ(ended, 1u);
  EXPECT_FALSE(homes.has_word(seen, 5));
}

TEST_F(NumberParts, RoomIsMadeBySplitsAndGivenBackByJoins) {
  fill(1, 500);
  EXPECT_GT(router().directory().depth(), 3u);
  expect_sound();
  const epoch::Guard guard;
  for (Number number = 1; number < 500; ++number) {
    EXPECT_EQ(search_.find(number), std::optional<Word>(~number));
    Pair* const pair = find(number);
    LockedSegment locked;
    search_.lock(locked, number, segments().hash_of(number));
    writer_.remove(*pair);
    pairs_.remove();
  }
  while (structure_.join_empty_segments()) {
  }
  EXPECT_EQ(router().look({0}).range, HashRange());
  expect_sound();
}

TEST_F(StringParts, PairsAreReadOnceAndInTheOrderOfTheirHashes) {
  constexpr Number kPairs = 300;
  fill(0, kPairs);
  PairReader<std::string> reader(search_);
  EachBatch<std::string> batch;
  std::vector<Number> hashes;
  for (bool more = true; more;) {
    more = reader.read(batch);
    batch.copied().for_each<Number>([&](std::string_view key, Number) {
      hashes.push_back(key.empty() ? 0 : segments().hash_of(key).bits);
      return true;
    });
  }
  EXPECT_EQ(hashes.size(), kPairs);
  EXPECT_TRUE(std::is_sorted(hashes.begin(), hashes.end()));
}

}  // namespace
}  // namespace perdix::detail::index::cceh
