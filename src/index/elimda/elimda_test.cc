// What ElimDa does with its layers: duplicates, what a crash or a change of the domain leaves, what
// an index costs. The behaviour of the calls is tested by tests/conformance, for all engines alike.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "index/common/test_seeds.h"
#include "index/elimda/test_map.h"
#include "util/random.h"
#include "util/test_directory.h"
#include "util/test_hash.h"

namespace perdix::detail::index::elimda {
namespace {

using Number = std::uint64_t;

constexpr ElimDaOptions kInUnits{.media_units = MediaUnits::always};

template <class Kinds>
class ElimDaTest : public testing::Test {};

TYPED_TEST_SUITE(ElimDaTest, AllKinds);

/// As if a crash had come between the relocation of a pair and the end of its copy (E7): the
/// strings are the table's.
TEST(ElimDa, ADropFreesTheStringsOfAPairAndItsCopyOnce) {
  TestMap<std::string, std::string> map;
  map.drop();
  const std::uint64_t empty = map.allocated();
  for (Number i = 1; i <= 500; ++i) map->put(datum<std::string>(i), datum<std::string>(i));
  auto& table = TestAccess::pm_table(*map);
  auto& backup = TestAccess::backup(*map);
  BackupLog::Unit unit = 0;
  while (backup.words(unit)[0] != 0) ASSERT_LT(++unit, backup.units());
  unsigned copied = 0;
  table.for_each_leader([&](std::uint64_t, Reference leader) {
    for (unsigned slot = 0; slot < kSmall.p_pairs && copied < kSmall.unit_pairs; ++slot) {
      if (!table.live(leader.offset, 0, slot)) continue;
      backup.pairs(unit)[copied++] = table.pairs(leader.offset, 0)[slot];
    }
  });
  ASSERT_EQ(copied, kSmall.unit_pairs);
  backup.words(unit)[0] = UnitWord{0xf, UnitWord::kNoLog, 0}.pack();
  map.drop();
  EXPECT_EQ(map.allocated(), empty);
  map.expect_sound_pool();
}

/// As if a crash had come when one of two words of a unit was there: the strings are the log's.
TEST(ElimDa, ADropFreesTheStringsOfALogThatWasCopiedHalfWayOnce) {
  constexpr Shape kTwoWords{4, 32, 32, 64, 2};
  TestMap<std::string, std::string> map(kTwoWords);
  map.drop();
  const std::uint64_t empty = map.allocated();
  const CollectingLog log = TestAccess::log_set(*map).log(0);
  for (Number i = 1; log.line().count < 20; ++i) map->put(datum<std::string>(i), "value");
  auto& backup = TestAccess::backup(*map);
  const BackupLog::Unit unit = backup.take({0}, 0);
  for (unsigned i = 0; i < log.line().count; ++i) backup.pairs(unit)[i] = log.pairs()[i];
  const std::uint32_t number = LogWord::unpack(log.word()).number;
  backup.words(unit)[0] = UnitWord{0xffff, log.name(), number}.pack();
  map.drop();
  EXPECT_EQ(map.allocated(), empty);
  map.expect_sound_pool();
}

/// What keys cost: the directory's depth, segments, and bytes of the pool and of DRAM.
struct Cost {
  unsigned depth, segments;
  std::uint64_t pm_bytes, dram_bytes;
};

Cost cost_of(TestMap<Number, Number>& map) {
  return {Reference::unpack(map.root().directory).depth, TestAccess::segments(*map),
          map.allocated(), map->stats().dram_bytes};
}

TEST(ElimDa, ComputedCollisionsCostWhatRandomKeysCost) {
  constexpr Number kPairs = 8192;
  TestMap<Number, Number> usual(Shape{}), flooded(Shape{}), without_seed(Shape{});
  without_seed.forget_seed();
  util::Random random(1);
  for (const Number key : util::numbers_that_hash_alike(kPairs)) {
    usual->put(random(), key);
    flooded->put(key, key);
    without_seed->put(key, key);
  }
  const Cost of_usual = cost_of(usual), of_flooded = cost_of(flooded);
  EXPECT_GE(cost_of(without_seed).depth, of_usual.depth + 8) << "the keys do not collide";
  EXPECT_LE(of_flooded.depth, of_usual.depth + 1);
  EXPECT_LE(of_flooded.segments, of_usual.segments + 2);
  EXPECT_LE(of_flooded.pm_bytes, of_usual.pm_bytes * 5 / 4);
  EXPECT_LE(of_flooded.dram_bytes, of_usual.dram_bytes * 5 / 4);
  EXPECT_EQ(flooded->size(), kPairs);
}

TEST(ElimDa, EachIndexDrawsASeed) {
  TestMap<Number, Number> map;
  expect_drawn_seeds([&](std::string_view name) {
    auto handle = map.core().open_index(name, kEngineName, Kind::u64, Kind::u64);
    return open_root(map.core(), handle.root(), kSmall).seed;
  });
}

/// As a release before there were seeds has left it.
TYPED_TEST(ElimDaTest, AnIndexWithoutASeedOpensAsBefore) {
  using K = typename TypeParam::Key;
  using V = typename TypeParam::Value;
  TestMap<K, V> map;
  map.forget_seed();
  std::map<K, V> model;
  for (Number round = 0; round < 3; ++round) {
    for (Number i = round * 500; i < round * 500 + 1000; ++i) {
      map->put(datum<K>(i), datum<V>(i + round));
      model[datum<K>(i)] = datum<V>(i + round);
    }
    for (Number i = round; i < 400; i += 3)
      ASSERT_EQ(map->erase(datum<K>(i)), model.erase(datum<K>(i)) == 1);
    map.reopen();
    EXPECT_EQ(TestAccess::hash_of(*map, View<K>(datum<K>(1))).bits,
              util::hash(View<K>(datum<K>(1))));
    EXPECT_EQ(map.root().magic, Root::kUnseededMagic);
    expect_pairs(map, model);
  }
  map.expect_sound_pool();
}

TEST(ElimDa, RefusesARootWhoseSeedDoesNotFitItsFormat) {
  TestMap<Number, Number> map;
  const auto opens = [&] {
    try {
      (void)shape_of(map.core(), map.root());
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::corrupt);
      return false;
    }
  };
  EXPECT_TRUE(opens());
  map.root().magic = Root::kUnseededMagic;
  EXPECT_FALSE(opens());
  map.root().seed = 0;
  EXPECT_TRUE(opens());
  map.root().magic = Root::kMagic;
  EXPECT_FALSE(opens());
  map.root().seed = kTestSeed;
}

TEST(ElimDa, GrowsToManyPairsOfTheDefaultShape) {
  Shape shape;
  TestMap<Number, Number> map(shape);
  constexpr Number kPairs = 400'000;
  for (Number i = 0; i < kPairs; ++i) map->insert_ahead(i, ~i);
  EXPECT_EQ(map->size(), kPairs);
  for (Number i = 0; i < kPairs; ++i) ASSERT_EQ(map->get(i), ~i);
  for (Number i = kPairs; i < 2 * kPairs; ++i) ASSERT_FALSE(map->contains(i));
  map.reopen();
  for (Number i = 0; i < kPairs; ++i) ASSERT_EQ(map->get(i), ~i);
  map.expect_sound_pool();
  EXPECT_EQ(map->size(), kPairs);
}

/// All that lies in DRAM is fingerprints and D-buckets, whose room follows their pairs.
TEST(ElimDa, KeepsLittleInDram) {
  TestMap<Number, Number> map(Shape{});
  constexpr Number kPairs = 400'000;
  for (Number i = 0; i < kPairs; ++i) map->insert_ahead(i, i);
  while (!map.core().reclaimer().drain()) continue;  // what was replaced is not what is kept
  const IndexStats stats = map->stats();
  const std::uint64_t of_fingerprints = 2 * kPairs, of_logs = TestAccess::log_set(*map).bytes();
  EXPECT_LT((stats.dram_bytes - of_fingerprints - of_logs) / stats.leaves, 280u);
}

/// Pairs that were relocated to the PM table and then erased must not come back from the backup
/// log, nor pairs that a split moved.
TEST(ElimDa, ErasedPairsDoNotComeBackAfterARelocation) {
  TestMap<Number, Number> map;
  constexpr Number kPairs = 500;
  for (Number i = 0; i < kPairs; ++i) map->insert_ahead(i, i);
  for (Number i = 0; i < kPairs; i += 2) ASSERT_TRUE(map->erase(i));
  for (unsigned round = 0; round < 2; ++round) {
    map.reopen();
    for (Number i = 0; i < kPairs; ++i) ASSERT_EQ(map->contains(i), i % 2 == 1) << i;
    EXPECT_EQ(map->size(), kPairs / 2);
  }
  map.expect_sound_pool();
}

TEST(ElimDa, ASplitRemovesDuplicates) {
  TestMap<Number, Number> map;
  map->insert_ahead(1, 100);
  for (Number i = 0; i < 5000; ++i) map->insert_ahead(1, i);
  EXPECT_EQ(map->get(1), std::optional<Number>(100));
  EXPECT_EQ(TestAccess::segments(*map), 1u);
  EXPECT_EQ(map->size(), 1u);
  EXPECT_TRUE(map->erase(1));
  map.reopen();
  EXPECT_EQ(map->size(), 0u);
}

/// An erased index gives its segments and chunks back when the pool asks for space, and takes new
/// ones afterwards.
TEST(ElimDa, ReleasesWhatItDoesNotNeedWhenEmpty) {
  TestMap<Number, Number> map;
  constexpr Number kPairs = 20000;
  for (unsigned round = 0; round < 3; ++round) {
    for (Number i = 0; i < kPairs; ++i) ASSERT_TRUE(map->insert(i, i + round));
    EXPECT_GT(TestAccess::segments(*map), 500u);
    for (Number i = 0; i < kPairs; ++i) ASSERT_TRUE(map->erase(i));
    EXPECT_TRUE(map->reclaim_space());
    EXPECT_EQ(TestAccess::segments(*map), 1u);
    EXPECT_EQ(TestAccess::backup(*map).chunks(), 0u);
    map.expect_sound_pool();
  }
}

/// Collecting logs that a run with persistent caches has left are emptied where caches are
/// volatile, and are there again afterwards. With some seeds a bucket has pairs of one key that
/// came in runs of both kinds, and keeps them in DRAM over several openings.
class ElimDaDomains : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ElimDaDomains, PairsAreKeptWhenTheDomainChanges) {
  Shape shape = kSmall;
  shape.seed = GetParam();
  const testing_files::TempDirectory folder;
  const auto open = [&](bool volatile_caches) {
    PoolOptions options;
    options.durability = volatile_caches ? Durability::power : Durability::process;
    if (volatile_caches) options.domain = DomainChoice::memory_controller;
    return Pool::open_or_create(folder.path() / "pool", options);
  };
  std::map<Number, Number> model;
  for (unsigned round = 0; round < 6; ++round) {
    Pool pool = open(round % 2 == 1);
    std::optional<Map<Number, Number>> opened;
    opened.emplace(pool.core()->open_index("t", kEngineName, Kind::u64, Kind::u64), kInUnits,
                   shape);
    auto* map = &*opened;
    expect_pairs(map, model);
    for (Number i = 0; i < 70; ++i) {
      map->insert_ahead(i * 3 + round, round);
      model.emplace(i * 3 + round, round);
      if (i % 4 == 0) {
        EXPECT_EQ(map->erase(i * 2), model.erase(i * 2) == 1);
      }
    }
    expect_pairs(map, model);
    EXPECT_EQ(map->check().problems, std::vector<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ElimDaDomains, testing::Range<std::uint64_t>(1, 9));

/// A unit that takes pairs one at a time makes durable only the words that have some. The others
/// may be of its earlier use, as a copy of a log.
TEST(ElimDa, StaleWordsOfAUnitHideNoPairs) {
  constexpr Shape kLongUnits{4, 64, 64, 128, 2};
  const testing_files::TempDirectory folder;
  PoolOptions options;
  options.durability = Durability::power;
  options.domain = DomainChoice::memory_controller;  // no pair is in a collecting log
  const Pool pool = Pool::create(folder.path() / "pool", options);
  std::map<Number, Number> model;
  std::optional<Map<Number, Number>> map;
  const auto open = [&] {
    map.reset();
    map.emplace(pool.core()->open_index("t", kEngineName, Kind::u64, Kind::u64), kInUnits,
                kLongUnits);
  };
  open();
  for (Number i = 0; i < 20; ++i) ASSERT_TRUE(map->insert(i, i));
  for (Number i = 0; i < 16; ++i) ASSERT_TRUE(map->erase(i));  // the first word has none left
  for (Number i = 16; i < 20; ++i) model.emplace(i, i);
  auto& backup = TestAccess::backup(*map);
  ASSERT_EQ(backup.used_units(), 1u);
  for (unsigned word = 2; word < kLongUnits.unit_words(); ++word)
    backup.words(0)[word] = UnitWord{0, 3, 7}.pack();
  open();
  auto* const opened = &*map;
  expect_pairs(opened, model);
  EXPECT_EQ(map->check().problems, std::vector<std::string>());
}

/// A visitor may erase, and have segments joined that were shown or are still to be.
TEST(ElimDa, ShowsEachPairOnceWhileSegmentsAreJoined) {
  constexpr Number kPairs = 3000;
  for (const Number calls : {1, 50, 700, 2000}) {
    TestMap<Number, Number> map;
    for (Number i = 0; i < kPairs; ++i) map->insert(i, i);
    std::map<Number, Number> shown;
    map->for_each([&](Number key, Number value) {
      EXPECT_TRUE(shown.emplace(key, value).second) << key;
      if (shown.size() == calls) {
        for (Number i = 0; i < kPairs; ++i) {
          if (i % 100 != 0) map->erase(i);
        }
        EXPECT_TRUE(map->reclaim_space());
      }
      return true;
    });
    for (Number i = 0; i < kPairs; i += 100) EXPECT_TRUE(shown.contains(i)) << i;
    EXPECT_EQ(map->size(), kPairs / 100);
  }
}

/// Values are so long that a log is shown in parts. Between two of them its pairs go to buckets.
TEST(ElimDa, ShowsThePairsOfALogThatIsFlushedBetweenItsParts) {
  constexpr Number kThere = 12;
  for (Number first = 0; first < 20 * kThere; first += kThere) {
    TestMap<Number, std::string> map;
    for (Number i = first; i < first + kThere; ++i) map->insert(i, std::string(20'000, 'v'));
    std::map<Number, unsigned> shown;
    map->for_each([&](Number key, std::string_view) {
      ++shown[key];
      for (Number i = 1000; i < 1100; ++i) map->insert(i, "w");  // all of them the first time
      return true;
    });
    for (Number i = first; i < first + kThere; ++i) EXPECT_EQ(shown[i], 1u) << i;
  }
}

}  // namespace
}  // namespace perdix::detail::index::elimda
