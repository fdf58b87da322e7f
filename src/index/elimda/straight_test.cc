// Where media units do not matter, pairs come straight to their P-buckets. Each opening chooses
// anew whether they do.
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/error.h>
#include <perdix/pool.h>

#include "index/elimda/test_map.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::detail::index::elimda {
namespace {

/// One bucket for each segment, so that a few keys fill it.
constexpr Shape kOneBucket{4, 4, 4, 64, 1};

template <class KV>
class ElimDaStraight : public testing::Test {};

TYPED_TEST_SUITE(ElimDaStraight, AllKinds);

TYPED_TEST(ElimDaStraight, FreesEverythingOnDrop) {
  using K = typename TypeParam::Key;
  using V = typename TypeParam::Value;
  TestMap<K, V> map(kSmall, MediaUnits::never);
  map.drop();
  const std::uint64_t empty = map.allocated();
  for (Number i = 0; i < 2000; ++i) map->insert_ahead(datum<K>(i), datum<V>(i));
  EXPECT_GT(TestAccess::segments(*map), 16u);
  map.drop();
  EXPECT_EQ(map.allocated(), empty);
}

/// The pairs of one bucket, until it is full and its segment split.
TEST(ElimDaStraight, AFullPBucketHasTheRestInItsDBucket) {
  TestMap<Number, Number> map(kOneBucket, MediaUnits::never);
  for (Number i = 0; i < kOneBucket.p_pairs; ++i) {
    ASSERT_TRUE(map->insert(i, i + 1));
    ASSERT_FALSE(map->insert(i, 0));
    EXPECT_EQ(TestAccess::where(*map, i), Where::p_bucket);
  }
  EXPECT_EQ(TestAccess::backup(*map).chunks(), 0u);
  const Number most = kOneBucket.p_pairs + 2 * kOneBucket.d_pairs;
  for (Number i = kOneBucket.p_pairs; i < most; ++i) {
    ASSERT_TRUE(map->insert(i, i + 1));
    EXPECT_EQ(TestAccess::where(*map, i), Where::d_bucket);
  }
  EXPECT_EQ(TestAccess::segments(*map), 1u);
  map.expect_sound();
  ASSERT_TRUE(map->insert(most, most + 1));
  EXPECT_EQ(TestAccess::segments(*map), 2u);
  EXPECT_EQ(TestAccess::backup(*map).used_units(), 0u) << "a split takes all to P-buckets";
  for (Number i = 0; i <= most; ++i) {
    EXPECT_EQ(TestAccess::where(*map, i), Where::p_bucket) << i;
    EXPECT_EQ(map->get(i), i + 1);
  }
  map.expect_sound_pool();
}

/// Also when they have got fingerprints, and when a restart has come in between.
TEST(ElimDaStraight, RecentPairsChangeAndGo) {
  const unsigned recent = kOneBucket.recent_pairs();
  for (const bool reopened : {false, true}) {
    for (Number count = 1; count <= 3 * recent; ++count) {
      TestMap<Number, Number> map(kOneBucket, MediaUnits::never);
      std::map<Number, Number> model;
      for (Number i = 0; i < count; ++i) {
        map->put(i, i);
        model[i] = i;
      }
      if (reopened) map.reopen();
      for (Number i = 0; i < count; i += 2) {
        ASSERT_TRUE(map->update(i, 100 + i));
        model[i] = 100 + i;
      }
      for (Number i = 0; i < count; i += 3) {
        ASSERT_TRUE(map->erase(i));
        ASSERT_FALSE(map->erase(i));
        model.erase(i);
      }
      expect_pairs(map, model);
      map.expect_sound();
      map.reopen();
      expect_pairs(map, model);
    }
  }
}

/// Erased pairs give their slots back when the bucket is full.
TEST(ElimDaStraight, PairsThatComeAndGoNeedNoMoreSegments) {
  TestMap<Number, Number> map(kOneBucket, MediaUnits::never);
  constexpr Number kThere = 20;
  for (Number i = 0; i < 5000; ++i) {
    ASSERT_TRUE(map->insert(i, i));
    if (i >= kThere) {
      ASSERT_TRUE(map->erase(i - kThere));
    }
  }
  EXPECT_EQ(TestAccess::segments(*map), 1u);
  EXPECT_EQ(map->size(), kThere);
  map.expect_sound_pool();
}

TEST(ElimDaStraight, AnErasedIndexGivesItsSegmentsBack) {
  TestMap<Number, Number> map(kSmall, MediaUnits::never);
  constexpr Number kPairs = 2000;
  for (Number i = 0; i < kPairs; ++i) ASSERT_TRUE(map->insert(i, i));
  for (Number i = 0; i < kPairs; ++i) ASSERT_TRUE(map->erase(i));
  for (Number i = 0; i < 40; ++i) EXPECT_TRUE(map->insert(i, i));  // these keep their segments
  EXPECT_TRUE(map.core().reclaim_space());
  for (Number i = 0; i < 40; ++i) {
    EXPECT_EQ(map->get(i), std::optional<Number>(i));
    ASSERT_TRUE(map->erase(i));
  }
  map.core().reclaim_space();
  EXPECT_EQ(TestAccess::segments(*map), 1u);
  map.expect_sound_pool();
}

/// Buckets fill up before segments split, and DRAM has little more than fingerprints.
TEST(ElimDaStraight, TakesLittleSpace) {
  constexpr Number kPairs = 300'000;
  TestMap<Number, Number> map(Shape{}, MediaUnits::never);
  util::Random random(1);
  double pm = 0, dram = 0, full = 0;
  unsigned samples = 0;
  for (Number i = 1; i <= kPairs; ++i) {
    map->put(random(), i);
    if (i < kPairs / 4 || i % (kPairs / 60) != 0) continue;
    while (!map.core().reclaimer().drain()) continue;  // what was replaced is not what is kept
    const IndexStats stats = map->stats();
    pm += static_cast<double>(stats.pm_bytes) / static_cast<double>(i);
    dram += static_cast<double>(stats.dram_bytes) / static_cast<double>(i);
    full += stats.load_factor;
    ++samples;
  }
  fmt::print("{:.2f} bytes of the pool and {:.2f} of DRAM a pair, {:.3f} full on average\n",
             pm / samples, dram / samples, full / samples);
  EXPECT_LE(pm / samples, 26);
  EXPECT_LE(dram / samples, 3.5);
  EXPECT_GE(full / samples, 0.69);
}

/// A pool whose space another index takes, and an index in it that is opened in one way or another.
class ElimDaFullPool : public testing::Test {
 protected:
  using OtherMap = Map<Number, std::string>;

  void open(MediaUnits units) {
    map.reset();
    map.emplace(pool_.core()->open_index("t", kEngineName, Kind::u64, Kind::bytes),
                ElimDaOptions{.resume_in_background = false, .media_units = units}, kSmall);
  }
  void take_all_space() {
    OtherMap other(pool_.core()->open_index("other", kEngineName, Kind::u64, Kind::bytes));
    for (std::size_t size = std::size_t{1} << 18, i = 0; size > 1000; size /= 2) {
      try {
        for (;; ++i) other.put(i, std::string(size, 'v'));
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), Errc::out_of_space);
      }
    }
  }
  void give_space_back() { pool_.drop("other"); }
  void expect_pairs(Number count, std::string_view value) {
    for (Number i = 0; i < count; ++i) EXPECT_EQ(map->get(i), value) << i;
    EXPECT_EQ(map->check().problems, std::vector<std::string>());
  }

  std::optional<Map<Number, std::string>> map;

 private:
  static PoolOptions options() {
    PoolOptions options;
    options.max_size = std::uint64_t{16} << 20;
    return options;
  }

  const testing_files::TempDirectory folder_;
  Pool pool_ = Pool::create(folder_.path() / "pool", options());
};

/// What the logs have stays there until an opening finds space for it.
TEST_F(ElimDaFullPool, KeepsItsLogs) {
  open(MediaUnits::always);
  for (Number i = 0; i < 3; ++i) ASSERT_TRUE(map->insert(i, "before"));
  take_all_space();
  open(MediaUnits::never);
  EXPECT_TRUE(TestAccess::has_logs(*map));
  expect_pairs(3, "before");
  for (Number i = 0; i < 3; ++i) ASSERT_TRUE(map->update(i, ""));
  EXPECT_EQ(TestAccess::where(*map, Number{0}), Where::log);
  EXPECT_TRUE(map->insert(3, ""));
  expect_pairs(4, "");
  give_space_back();
  open(MediaUnits::never);
  EXPECT_FALSE(TestAccess::has_logs(*map));
  expect_pairs(4, "");
}

/// Pairs come straight until an opening finds space for logs.
TEST_F(ElimDaFullPool, DoesWithoutLogs) {
  open(MediaUnits::never);
  for (Number i = 0; i < 3; ++i) ASSERT_TRUE(map->insert(i, "before"));
  take_all_space();
  open(MediaUnits::always);
  EXPECT_FALSE(TestAccess::has_logs(*map));
  expect_pairs(3, "before");
  for (Number i = 0; i < 3; ++i) ASSERT_TRUE(map->update(i, ""));
  EXPECT_TRUE(map->insert(3, ""));
  EXPECT_EQ(TestAccess::where(*map, Number{3}), Where::p_bucket);
  expect_pairs(4, "");
  give_space_back();
  open(MediaUnits::always);
  EXPECT_TRUE(TestAccess::has_logs(*map));
  expect_pairs(4, "");
}

struct Choice {
  Durability durability;
  DomainChoice domain;
  MediaUnits units;
  bool straight;
};

/// Where the pool lies in memory, as all of these do.
TEST(ElimDaStraight, IsChosenByTheDomain) {
  constexpr auto process = Durability::process, power = Durability::power;
  const std::vector<Choice> choices = {
      {process, DomainChoice::detect, MediaUnits::detect, true},
      {process, DomainChoice::detect, MediaUnits::always, false},
      {power, DomainChoice::detect, MediaUnits::detect, true},  // pages of a file
      {power, DomainChoice::detect, MediaUnits::always, false},
      {power, DomainChoice::cpu_cache, MediaUnits::detect, false},
      {power, DomainChoice::memory_controller, MediaUnits::detect, false},
      {power, DomainChoice::memory_controller, MediaUnits::never, true},
      {process, DomainChoice::memory_controller, MediaUnits::detect, false},
  };
  const testing_files::TempDirectory folder;
  for (const Choice& choice : choices) {
    SCOPED_TRACE(&choice - choices.data());
    PoolOptions options;
    options.durability = choice.durability;
    options.domain = choice.domain;
    const auto path = folder.path() / "pool";
    std::filesystem::remove(path);
    const Pool pool = Pool::create(path, options);
    EXPECT_EQ(!in_media_units(choice.units, *pool.core()), choice.straight);
    Map<Number, Number> map(pool.core()->open_index("t", kEngineName, Kind::u64, Kind::u64),
                            ElimDaOptions{.media_units = choice.units});
    map.put(1, 1);
    EXPECT_EQ(TestAccess::where(map, Number{1}) == Where::p_bucket, choice.straight);
    const bool persistent = pool.core()->pm().domain() == pm::Domain::cpu_cache;
    EXPECT_EQ(TestAccess::has_logs(map), persistent && !choice.straight);
  }
}

}  // namespace
}  // namespace perdix::detail::index::elimda
