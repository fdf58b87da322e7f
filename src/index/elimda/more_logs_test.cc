// The number of collecting logs grows with the table: a small index takes little of the pool and of
// DRAM, and pairs are found on their way to the new logs, whatever else happens meanwhile.
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/error.h>
#include <perdix/papers/elimda.h>

#include "index/elimda/test_map.h"
#include "util/test_directory.h"

namespace perdix::detail::index::elimda {
namespace {

constexpr ElimDaOptions kInUnits{.media_units = MediaUnits::always};

/// What an index of the default options takes of the pool and of DRAM.
TEST(MoreLogsSizes, FollowThoseOfTheTable) {
  struct Bound {
    Number pairs, pool_kib, dram_kib;
    unsigned logs;
  };
  constexpr std::array kBounds = {Bound{0, 96, 48, 64},
                                  Bound{1, 96, 48, 64},
                                  Bound{100, 96, 48, 64},
                                  Bound{1000, 160, 96, 64},
                                  Bound{10'000, 640, 160, 256},
                                  Bound{100'000, 3400, 640, 2048},
                                  Bound{300'000, 12'000, 1800, 8192}};
  const testing_files::TempDirectory folder;
  const Pool pool = Pool::create(folder.path() / "pool");
  const Number before = pool.info().allocated;
  Map<Number, Number> map(pool.core()->open_index("t", kEngineName, Kind::u64, Kind::u64),
                          kInUnits);
  Number pairs = 0;
  for (const Bound& bound : kBounds) {
    SCOPED_TRACE(bound.pairs);
    for (; pairs < bound.pairs; ++pairs) map.put(pairs, pairs);
    while (!pool.core()->reclaimer().drain()) continue;  // of what was replaced
    const Number in_pool = pool.info().allocated - before, in_dram = map.stats().dram_bytes;
    fmt::print("{} pairs: {} logs, {} KiB of the pool, {} KiB of DRAM\n", pairs,
               TestAccess::log_set(map).count(), in_pool >> 10, in_dram >> 10);
    EXPECT_LE(in_pool, bound.pool_kib << 10);
    EXPECT_LE(in_dram, bound.dram_kib << 10);
    EXPECT_EQ(TestAccess::log_set(map).count(), bound.logs);
  }
}

/// As a release has left it whose number of logs did not grow.
TEST(MoreLogsFormat, AnIndexWithANumberOfLogsKeepsIt) {
  for (const bool seeded : {true, false}) {
    Shape shape = kGrowing;
    shape.logs = 4;
    shape.logs_grow = false;
    TestMap<Number, Number> map(shape);
    EXPECT_EQ(map.root().magic, Root::kMagic);
    if (!seeded) map.forget_seed();
    const Number area = map.root().log_area;
    std::map<Number, Number> model;
    for (Number i = 0; i < 2000; ++i) {
      map->insert_ahead(i, i);
      model.emplace(i, i);
      if (i % 500 == 0) map.reopen();
    }
    EXPECT_EQ(map.root().magic, seeded ? Root::kMagic : Root::kUnseededMagic);
    EXPECT_EQ(map.root().log_area, area);
    EXPECT_EQ(TestAccess::log_set(*map).count(), 4u);
    expect_pairs(map, model);
    map.expect_sound_pool();
  }
}

TEST(MoreLogsFormat, AnAreaWithMoreLogsThanTheRootAllowsIsRefused) {
  TestMap<Number, Number> map(kGrowing);
  Number& area = map.root().log_area;
  const Reference right = Reference::unpack(area);
  EXPECT_EQ(right.depth, 2u);
  const auto opens = [&](unsigned depth) {
    area = Reference{right.offset, depth}.pack();
    try {
      CollectingLogs(map.core(), map.root(), shape_of(map.core(), map.root())).open();
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::corrupt);
      return false;
    }
  };
  EXPECT_FALSE(opens(14));
  EXPECT_FALSE(opens(65535));
  EXPECT_TRUE(opens(2));
}

/// The area of one log of the usual shape has 528 bytes: blocks of that size are not all aligned to
/// lines.
TEST(MoreLogsFormat, AreasOfLogsAreAligned) {
  constexpr Shape kOneLog{1, 16, 16, 256, 15};
  TestMap<Number, Number> map(kOneLog);
  for (const char* name : {"u", "v", "w"}) {
    Map<Number, Number> other(map.core().open_index(name, kEngineName, Kind::u64, Kind::u64),
                              kInUnits, kOneLog);
    other.put(1, 2);
    EXPECT_EQ(other.get(1), std::optional<Number>(2));
  }
}

TEST(MoreLogsFormat, ARootOfGrowingLogsHasASeed) {
  TestMap<Number, Number> map(kGrowing);
  EXPECT_EQ(map.root().magic, Root::kGrowingMagic);
  EXPECT_NO_THROW((void)shape_of(map.core(), map.root()));
  map.root().seed = 0;
  EXPECT_THROW((void)shape_of(map.core(), map.root()), Error);
  map.root().seed = kTestSeed;
  map.root().logs = 32768;
  EXPECT_THROW((void)shape_of(map.core(), map.root()), Error);
  map.root().logs = kGrowing.logs;
}

/// A visitor adds pairs, so that there are more logs before the next pair is shown.
TEST(MoreLogsVisits, ShowEachPairOnceWhileLogsGrow) {
  constexpr Number kPairs = 40, kMore = 400;
  for (Number calls = 1; calls <= kPairs; ++calls) {
    SCOPED_TRACE(calls);
    TestMap<Number, Number> map(kGrowing);
    for (Number i = 0; i < kPairs; ++i) map->insert(i, i);
    const unsigned logs = TestAccess::log_set(*map).count();
    std::map<Number, Number> shown;
    map->for_each([&](Number key, Number value) {
      EXPECT_TRUE(shown.emplace(key, value).second) << key << " is shown twice";
      if (shown.size() == calls) {
        for (Number i = 0; i < kPairs; ++i) map->insert_ahead(i, i + 1);  // duplicates
        for (Number i = kPairs; i < kMore; ++i) map->insert_ahead(i, i);
        for (Number i = 0; i < kPairs; ++i) map->insert_ahead(i, i + 1);
      }
      return true;
    });
    EXPECT_GE(TestAccess::log_set(*map).count(), 4 * logs);
    for (Number i = 0; i < kPairs; ++i) EXPECT_EQ(shown[i], i) << i;
    EXPECT_EQ(map->size(), kMore);
  }
}

/// Where there is no space for more logs, the index goes on with those that it has.
TEST(MoreLogsSpace, AFullPoolKeepsItsLogs) {
  TestMap<Number, Number> map(kGrowing);
  std::vector<pm::Offset> blocks;
  const auto fill = [&](std::uint64_t bytes) {
    try {
      for (;;) {
        alloc::Session session = map.core().allocator().session();
        blocks.push_back(session.reserve(bytes));
        std::memset(map.core().at<char>(blocks.back()), 0xff, bytes);
        session.log();
        session.finish();
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::out_of_space);
    }
  };
  for (Number i = 0; i < 20; ++i) map->put(i, i);
  const unsigned logs = TestAccess::log_set(*map).count();
  for (std::uint64_t bytes = 1 << 20; bytes >= 64; bytes /= 2) fill(bytes);
  std::map<Number, Number> model;
  for (Number i = 0; i < 20; ++i) model.emplace(i, i);
  Number next = 20;
  try {
    for (;; ++next) {
      map->put(next, next);
      model.emplace(next, next);
    }
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::out_of_space);
  }
  EXPECT_EQ(TestAccess::log_set(*map).count(), logs);
  expect_pairs(map, model);
  for (const pm::Offset block : blocks) {
    alloc::Session session = map.core().allocator().session();
    session.free(block);
    session.log();
    session.finish();
  }
  for (Number i = next; i < next + 500; ++i) {
    map->put(i, i);
    model.emplace(i, i);
  }
  EXPECT_GT(TestAccess::log_set(*map).count(), logs);
  expect_pairs(map, model);
  map.expect_sound_pool();
}

/// Pairs in flight are older than those of the log, and only its line knows of them: there are no
/// more logs before they are in the DRAM table.
TEST(MoreLogsSpace, AFlushThatFailedHalfWayIsCompletedFirst) {
  TestMap<Number, Number> map(kGrowing);
  LogLine& line = TestAccess::log_set(*map).log(0).line();
  line.in_flight.store(1);  // as if
  Number next = 0;
  const auto put_into_other_logs = [&](Number pairs) {
    for (; pairs > 0; ++next) {
      if (TestAccess::hash_of(*map, next).prefix(2) == 0) continue;
      map->put(next, next);
      --pairs;
    }
  };
  put_into_other_logs(500);
  EXPECT_GT(TestAccess::segments(*map), 4u);
  ASSERT_EQ(TestAccess::log_set(*map).count(), 4u);
  line.in_flight.store(0);
  put_into_other_logs(500);
  EXPECT_GT(TestAccess::log_set(*map).count(), 4u);
  EXPECT_EQ(map->size(), 1000u);
  map.expect_sound_pool();
}

/// Collecting logs are not used where caches are volatile. Their number is kept.
TEST(MoreLogsDomains, PairsAreKeptWhenTheDomainChanges) {
  Shape shape = kGrowing;
  shape.seed = kTestSeed;
  const testing_files::TempDirectory folder;
  std::map<Number, Number> model;
  unsigned logs = 0;
  for (unsigned round = 0; round < 8; ++round) {
    PoolOptions options;
    const bool volatile_caches = round % 2 == 0;
    options.durability = volatile_caches ? Durability::power : Durability::process;
    if (volatile_caches) options.domain = DomainChoice::memory_controller;
    const Pool pool = Pool::open_or_create(folder.path() / "pool", options);
    Map<Number, Number> opened(pool.core()->open_index("t", kEngineName, Kind::u64, Kind::u64),
                               kInUnits, shape);
    auto* map = &opened;
    expect_pairs(map, model);
    for (Number i = 0; i < 120; ++i) {
      map->insert_ahead(i * 5 + round, round);
      model.emplace(i * 5 + round, round);
      if (i % 4 == 0) {
        EXPECT_EQ(map->erase(i * 2), model.erase(i * 2) == 1);
      }
    }
    expect_pairs(map, model);
    EXPECT_EQ(map->check().problems, std::vector<std::string>());
    if (volatile_caches) continue;
    EXPECT_GE(TestAccess::log_set(*map).count(), logs);
    logs = TestAccess::log_set(*map).count();
  }
  EXPECT_GE(logs, 32u);
}

}  // namespace
}  // namespace perdix::detail::index::elimda
