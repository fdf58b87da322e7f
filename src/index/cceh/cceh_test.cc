// What CCEH does to its segments and its directory: splits, what moved, what a crash leaves
// unfinished, keys that hash alike, joining. The behaviour of the calls is tested by
// tests/conformance, for all engines alike.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/cceh.h>
#include <perdix/error.h>
#include <perdix/pool.h>

#include "index/cceh/test_map.h"
#include "index/common/test_seeds.h"
#include "pm/test_files.h"
#include "util/random.h"
#include "util/test_hash.h"

namespace perdix::detail::index::cceh {
namespace {

using Number = std::uint64_t;

/// Numbers whose hashes begin with the same twelve bits and want the same two buckets of eight.
std::vector<Number> alike(std::size_t count) {
  constexpr std::array<unsigned, 2> kBuckets = {0, 1};
  const util::SeededHash seeded(kTestSeed);
  std::vector<Number> keys;
  for (Number key = 1; keys.size() < count; ++key) {
    const KeyHash hash{seeded(key)};
    if (hash.prefix(12) == 0 && hash.buckets_of(kSmall.buckets) == kBuckets) keys.push_back(key);
  }
  return keys;
}

template <class Kinds>
class CcehTest : public testing::Test {};

TYPED_TEST_SUITE(CcehTest, AllKinds);

// All pairs of the segments are gone, and too little was written since the log was last shortened
// for buffers to be merged now.
TEST(CcehBuffers, DoesNotJoinASegmentWithBufferedPairs) {
  TestMap<Number, Number> map(kSmall, {.dram_budget = kUnlimited, .technique = Technique::b});
  constexpr Number kOld = 200, kNew = 1000, kEnd = 1030;
  for (Number key = 1; key <= kOld; ++key) map->put(key, key);
  map.core().reclaim_space();
  for (Number key = 1; key <= kOld; ++key) ASSERT_TRUE(map->erase(key));
  for (Number key = kNew; key < kEnd; ++key) map->put(key, key);
  map.core().reclaim_space();
  for (Number key = kNew; key < kEnd; ++key) EXPECT_EQ(map->get(key), std::optional(key));
  EXPECT_EQ(map->size(), kEnd - kNew);
  map.expect_sound_pool();
}

/// Also where moved pairs were left behind, which must not come back.
TYPED_TEST(CcehTest, ReleasesEmptySegments) {
  using K = typename TypeParam::Key;
  using V = typename TypeParam::Value;
  for (const Shape& shape : {kSmall, Shape{8, 64}}) {
    SCOPED_TRACE(shape.lazy_depth);
    TestMap<K, V> map(shape);
    std::map<K, V> kept;
    for (Number i = 0; i < 5; ++i) kept[datum<K>(i)] = datum<V>(i);
    for (unsigned round = 0; round < 3; ++round) {
      for (Number i = 0; i < 2000; ++i) map->put(datum<K>(i), datum<V>(i));
      for (Number i = 5; i < 2000; ++i) ASSERT_TRUE(map->erase(datum<K>(i)));
      const std::uint64_t leaves = map->stats().leaves;
      EXPECT_TRUE(map.core().reclaim_space());
      EXPECT_LT(map->stats().leaves, leaves / 4);
      expect_pairs(map, kept);
      map.expect_sound_pool();
      expect_pairs(map, kept);
    }
    for (const auto& [key, value] : kept) ASSERT_TRUE(map->erase(key));
    EXPECT_TRUE(map.core().reclaim_space());
    EXPECT_EQ(map->stats().leaves, 1u);
    expect_pairs(map, std::map<K, V>());
  }
}

TEST(Cceh, GrowsToManyPairsOfTheDefaultShape) {
  TestMap<Number, Number> map{Shape{}};
  constexpr Number kPairs = 400'000, kStep = 10'000, kEnough = 50'000;
  for (Number i = 0; i < kPairs; ++i) {
    ASSERT_TRUE(map->insert(i, ~i));
    if (i < kEnough || i % kStep != 0) continue;
    // A segment splits when a pair finds both its buckets full, and no pair of them has room in its
    // other bucket. If hashes are random, that happens when 0.86 of all its slots are full. So the
    // table is between 0.43 and 0.86 full.
    const double load_factor = map->stats().load_factor;
    EXPECT_GT(load_factor, 0.41) << i;
    EXPECT_LT(load_factor, 0.88) << i;
  }
  EXPECT_EQ(map->size(), kPairs);
  for (Number i = 0; i < kPairs; ++i) ASSERT_EQ(map->get(i), ~i);
  for (Number i = kPairs; i < 2 * kPairs; ++i) ASSERT_FALSE(map->contains(i));
  map.reopen();
  for (Number i = 0; i < kPairs; ++i) ASSERT_EQ(map->get(i), ~i);
  map.expect_sound_pool();
  EXPECT_EQ(map->size(), kPairs);
}

/// A split writes one new segment; moved pairs stay behind, do not count, and make room.
TEST(Cceh, MovedPairsStayUntilTheyAreOverwritten) {
  TestMap<Number, Number> map;
  Number key = 1;
  while (map.directory().log == 0) map->put(key, key), ++key;
  const auto in_upper_half = [&](const Pair& pair) {
    return pair.key != 0 && map.hash_of(pair.key).bit(0) == 1;
  };
  const auto left = [&] { return std::count_if(map.slots(0), map.slots(0) + 32, in_upper_half); };
  EXPECT_GT(left(), 0);
  EXPECT_EQ(map->size(), key - 1);
  map.expect_sound();
  while (map.directory().log == 1) {
    if (map.hash_of(key).bit(0) == 0) map->put(key, key);
    ++key;
  }
  map.expect_sound_pool();
}

/// Where the tag of a string tells too little, nothing of another segment is left behind.
TEST(Cceh, DeepSegmentsAreWrittenAnew) {
  const util::SeededHash seeded(kTestSeed);
  for (const unsigned lazy_depth : {0u, 2u, 64u}) {
    TestMap<std::string, std::string> map(Shape{8, lazy_depth});
    for (Number i = 0; i < 1000; ++i) map->put(datum<std::string>(i), "v");
    unsigned moved = 0;
    for (Number i = 0; i < Number{1} << map.directory().log; ++i) {
      const Entry entry = Entry::unpack(map.entry(i));
      for (unsigned slot = 0; slot < 32; ++slot) {
        const Word word = map.slots(i)[slot].key;
        const unsigned known = std::min(entry.depth(), 16u);
        moved += word != 0 && KnownHash<std::string>::of(word, seeded).prefix(known) !=
                                  i >> (map.directory().log - known);
      }
    }
    EXPECT_EQ(moved == 0, lazy_depth < 64) << lazy_depth;
    map.expect_sound_pool();
  }
}

/// As if a crash had come between a split's commit and the copies of the leaders.
TEST(Cceh, StaleEntriesAreRightAndAreMended) {
  TestMap<Number, Number> map;
  std::map<Number, Number> model;
  const auto put = [&](Number key) {
    map->put(key, key + 1);
    model[key] = key + 1;
  };
  for (Number key = 0; key < 1000; ++key) put(key);
  const unsigned depth = map.directory().log;
  unsigned made_stale = 0;
  for (Number i = 0; i < Number{1} << depth;) {
    const Entry leader = Entry::unpack(map.entry(i));
    const Number span = Number{1} << (depth - leader.depth());
    // Of the segment that it was split from; which is the left one, for the first splits.
    const Entry former = leader.with_depth(leader.depth() - 1);
    for (Number j = i + 1; j < i + span; ++j) {
      if (j % (2 * span) == 0) continue;
      map.entry(j) = former.pack();
      ++made_stale;
    }
    if (i % 3 == 0) map.entry(i) = leader.as_pending().pack();
    i += span;
  }
  ASSERT_GT(made_stale, 0u);
  map.reopen();
  map.expect_sound();
  expect_pairs(map, model);
  unsigned stale = 0;  // no key has come by those
  for (Number i = 0; i < Number{1} << depth; ++i) {
    const Entry entry = Entry::unpack(map.entry(i));
    EXPECT_FALSE(entry.pending());
    const Number span = Number{1} << (depth - entry.depth());
    stale += map.entry(i) != map.entry(i / span * span);
  }
  EXPECT_LT(stale, made_stale / 2);
  for (Number key = 1000; key < 2000; ++key) put(key);
  expect_pairs(map, model);
  map.expect_sound_pool();
}

/// As if a crash had come before a split's commit: its other half is free memory.
TEST(Cceh, ALeaderThatIsNotOneYetIsNotFollowed) {
  TestMap<Number, Number> map;
  for (Number key = 0; key < 1000; ++key) map->put(key, key);
  const unsigned depth = map.directory().log;
  unsigned planted = 0;
  for (Number i = 0; i < Number{1} << depth;) {
    const Entry leader = Entry::unpack(map.entry(i));
    const Number span = Number{1} << (depth - leader.depth());
    if (span > 1) {
      map.entry(i + span / 2) = Entry{64, leader.depth() + 1}.as_pending().pack();
      ++planted;
    }
    i += span;
  }
  ASSERT_GT(planted, 0u);
  map.reopen();
  map.expect_sound();
  for (Number key = 0; key < 1000; ++key) ASSERT_EQ(map->get(key), key);
  map.expect_sound_pool();
}

TEST(Cceh, KeysThatHashAlikeFindRoom) {
  TestMap<Number, Number> map;
  std::map<Number, Number> model;
  const auto put = [&](Number key) {
    ASSERT_TRUE(map->insert(key, ~key));
    model[key] = ~key;
  };
  const std::vector<Number> crowd = alike(150);
  for (const Number key : crowd) put(key);
  EXPECT_EQ(map.directory().log, 0u);
  EXPECT_TRUE(Entry::unpack(map.entry(0)).crowded());
  expect_pairs(map, model);
  map.expect_sound();
  for (Number key = 0; key < 1000; ++key) {
    if (!model.contains(key)) put(key);
  }
  EXPECT_GT(map.directory().log, 4u);
  EXPECT_LT(map.directory().log, 12u);
  map.reopen();
  expect_pairs(map, model);
  map.expect_sound_pool();
  for (const Number key : crowd) {
    ASSERT_TRUE(map->erase(key));
    model.erase(key);
  }
  expect_pairs(map, model);
  for (const auto& pair : model) ASSERT_TRUE(map->erase(pair.first));
  EXPECT_TRUE(map.core().reclaim_space());
  EXPECT_EQ(map->stats().leaves, 1u);
  map.expect_sound_pool();
  for (const Number key : crowd) ASSERT_FALSE(map->contains(key));
}

/// What keys cost: the directory's depth, and the pairs for which their buckets had no place.
struct Cost {
  unsigned depth;
  Number in_overflows;
};

Cost cost_of(TestMap<Number, Number>& map) {
  Cost cost{map.directory().log, 0};
  for (Number i = 0; i <= map.last_entry(); ++i) {
    const Reference overflow = Reference::unpack(map.head(i).overflow);
    if (overflow.offset != pm::kNull) cost.in_overflows += Number{1} << overflow.log;
  }
  return cost;
}

TEST(Cceh, ComputedCollisionsCostWhatRandomKeysCost) {
  constexpr Number kPairs = 8192;
  const std::vector<Number> computed = util::numbers_that_hash_alike(kPairs);
  TestMap<Number, Number> usual(Shape{}), flooded(Shape{});
  util::Random random(1);
  for (const Number key : computed) {
    usual->put(random(), key);
    flooded->put(key, key);
    ASSERT_EQ(util::hash(key) >> 32, util::hash(computed[0]) >> 32)
        << "without a seed they collide";
  }
  EXPECT_EQ(cost_of(flooded).in_overflows, 0u);
  EXPECT_LE(cost_of(flooded).depth, cost_of(usual).depth + 1);
  EXPECT_EQ(flooded->size(), kPairs);
}

TEST(Cceh, EachIndexDrawsASeed) {
  TestMap<Number, Number> map;
  expect_drawn_seeds([&](std::string_view name) {
    auto handle = map.core().open_index(name, kEngineName, Kind::u64, Kind::u64);
    return open_root(map.core(), handle.root(), kSmall).seed;
  });
}

/// Its buckets lay in a row: a lookup would miss pairs.
TYPED_TEST(CcehTest, AnIndexOfAFormerFormatIsRefusedAndCanBeDropped) {
  using K = typename TypeParam::Key;
  using V = typename TypeParam::Value;
  for (const std::uint64_t magic : Root::kFormerMagics) {
    TestMap<K, V> map;
    const std::uint64_t empty = map.allocated();
    for (Number i = 0; i < 500; ++i) map->put(datum<K>(i), datum<V>(i));
    map.root().magic = magic;
    testing_files::expect_error(Errc::older_format, "earlier release", [&] { map.reopen_index(); });
    const CheckReport report = map.check_pool();
    EXPECT_EQ(report.problems, std::vector<std::string>()) << "it is not damaged";
    ASSERT_EQ(report.unknown.size(), 1u);
    EXPECT_NE(report.unknown[0].find("index 't' was not checked"), std::string::npos);
    map.drop();  // and makes a new one
    EXPECT_EQ(map.allocated(), empty);
    EXPECT_EQ(map->size(), 0u);
  }
}

TEST(Cceh, RefusesARootWithoutASeed) {
  TestMap<Number, Number> map;
  map.root().seed = 0;
  testing_files::expect_error(Errc::corrupt, "a root", [&] {
    (void)checked_root(map.core(), map.core().offset(&map.root()));
  });
  map.root().seed = kTestSeed;
}

/// Before the first split, and so after each: a segment is nearly full.
TEST(Cceh, PairsMoveToTheirOtherBucketBeforeASegmentIsSplit) {
  TestMap<Number, Number> map(Shape{});
  Number pairs = 0;
  while (map.directory().log == 0) {
    ++pairs;
    map->put(pairs, pairs);
  }
  EXPECT_GT(pairs, Shape().slots() * 8 / 10);
  for (Number i = 1; i <= pairs; ++i) ASSERT_EQ(map->get(i), i);
  map.expect_sound_pool();
}

TEST(Cceh, RefusesImpossibleOptions) {
  const testing_files::TempDirectory folder;
  const Pool pool = Pool::create(folder.path() / "pool");
  const auto refused = [&](const CcehOptions& options) {
    testing_files::expect_error(Errc::invalid_argument, "cceh: ", [&] {
      const perdix::Cceh<Number, Number> table(pool, "t", options);
    });
    EXPECT_TRUE(pool.indexes().empty());
  };
  for (const std::uint32_t bytes : {100U, 256U, 0U, 2U << 20}) refused({.segment_bytes = bytes});
  refused({.lazy_depth = 65});
  refused({.technique = Technique(7)});
  EXPECT_EQ(shape_from({}), Shape());
  EXPECT_EQ(shape_from({.segment_bytes = 576, .lazy_depth = 3}), kSmall);
}

TEST(Cceh, CheckFindsDamage) {
  TestMap<Number, Number> map;
  for (Number key = 1; key < 1000; ++key) map->put(key, key);
  map.expect_sound();
  const auto problems = [&] { return map->check().problems.size(); };
  const unsigned depth = map.directory().log;

  Number first = 0;  // a leader with copies
  while (Entry::unpack(map.entry(first)).depth() == depth) ++first;
  const Entry leader = Entry::unpack(map.entry(first));
  Pair* pair = map.slots(first);
  while (pair->key == 0 ||
         map.hash_of(pair->key).prefix(leader.depth()) != first >> (depth - leader.depth()))
    ++pair;
  const Pair kept = *pair;
  pair->key = 0;
  EXPECT_GT(problems(), 0u) << "a pair is gone";
  *pair = kept;
  EXPECT_EQ(problems(), 0u);

  const auto buckets = map.hash_of(kept.key).buckets_of(kSmall.buckets);
  unsigned foreign = 0;
  while (foreign == buckets[0] || foreign == buckets[1]) ++foreign;
  Pair& far = map.slots(first)[foreign * kBucketPairs];
  const Pair replaced = far;
  far = kept;
  EXPECT_GT(problems(), 0u) << "a pair is twice there, and in a foreign bucket";
  far = replaced;
  EXPECT_EQ(problems(), 0u);

  map.entry(first + 1) = Entry{leader.offset(), depth}.pack();
  EXPECT_GT(problems(), 0u) << "an entry is no leader";
  map.entry(first + 1) = leader.pack();
  map.expect_sound();

  std::uint64_t& number = map.head(first).number;
  std::uint64_t& other = map.head(first == 0 ? map.last_entry() : 0).number;
  number = 1;
  EXPECT_GT(problems(), 0u) << "a segment has a number that was not drawn";
  map.root().numbers = 1;
  EXPECT_EQ(problems(), 0u);
  other = 1;
  EXPECT_GT(problems(), 0u) << "two segments have one number";
  number = other = map.root().numbers = 0;
  map.expect_sound();
}

}  // namespace
}  // namespace perdix::detail::index::cceh
