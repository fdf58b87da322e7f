// Every policy of caching, and combinations: the same answers, also while rows are written, and
// what is in DRAM is what the policy says.
#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "index/elf/caches/chooser.h"
#include "index/elf/test_elf.h"

namespace perdix::detail::index::elf {
namespace {

constexpr unsigned kDims = 5;

/// Few values, so that queries meet many lists.
Model small_values(util::Random& random, std::size_t rows) {
  Model model;
  for (std::size_t i = 0; i < rows; ++i) {
    TestRow row(kDims);
    for (std::uint32_t& value : row) value = static_cast<std::uint32_t>(random.below(7));
    model.add(row);
  }
  return model;
}

std::vector<std::pair<std::string, CachePolicy>> all_policies() {
  using P = CachePolicy;
  return {
      {"none", P::none()},
      {"hybrid", P::hybrid()},
      {"hybrid without room", P::hybrid().within(20000)},
      {"one level", P::static_levels(1)},
      {"three levels", P::static_levels(3)},
      {"all levels", P::static_levels(32)},
      {"levels without room", P::static_levels(4).within(3000)},
      {"dynamic", P::dynamic(1 << 20)},
      {"dynamic of few", P::dynamic(4000)},
      {"dynamic by probability", P::dynamic(4000, P::Eviction::probability)},
      {"static and dynamic", P::static_levels(2) | P::dynamic(1 << 20)},
      {"probability", P::probability(5000)},
      {"probability of all", P::probability(1 << 20)},
      {"all of it", (P::static_levels(2) | P::probability(4000) | P::dynamic(4000)).within(9000)},
      {"no room at all", (P::static_levels(2) | P::dynamic(100)).within(10)}};
}

std::string name_of_policy(
    const ::testing::TestParamInfo<std::pair<std::string, CachePolicy>>& policy) {
  std::string name = policy.param.first;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

class Policies : public ::testing::TestWithParam<std::pair<std::string, CachePolicy>> {};
INSTANTIATE_TEST_SUITE_P(Elf, Policies, ::testing::ValuesIn(all_policies()), name_of_policy);

TEST_P(Policies, GiveTheSameAnswers) {
  util::Random random(1);
  TestElf elf(kDims);
  Model model = small_values(random, 3000);
  ASSERT_TRUE(build(*elf, columns_of(model, kDims)));
  elf->cache(GetParam().second);
  elf->wait_for_cache();
  for (int round = 0; round < 3; ++round) {
    expect_rows(*elf, model, random);
    for (int i = 0; i < 200; ++i) {
      const TestRow row = small_values(random, 1).rows[0];
      EXPECT_EQ(elf->insert(row), model.add(row));
      const auto tid = static_cast<Tid>(random.below(model.next));
      EXPECT_EQ(elf->erase(tid), model.rows.erase(tid) > 0);
    }
    expect_rows(*elf, model, random);
    EXPECT_TRUE(elf->compact(nullptr));
    if (round == 1) elf->wait_for_cache();
  }
  const ElfStats stats = elf->elf_stats();
  EXPECT_EQ(stats.policy, GetParam().second);
  EXPECT_LE(stats.cache_bytes, GetParam().second.budget);
  elf.expect_sound_pool();
}

TEST_P(Policies, MayChangeWhileQueriesAndWritersRun) {
  util::Random random(2);
  TestElf elf(kDims);
  const Model model = small_values(random, 2000);
  ASSERT_TRUE(build(*elf, columns_of(model, kDims)));
  std::atomic<bool> done{false};
  const auto query = [&](std::uint64_t seed) {
    util::Random own(seed);
    while (!done) {
      const Box box = random_box(own, kDims);
      const std::uint64_t built = model.in(box).size();
      const std::uint64_t found = elf->count(box);
      EXPECT_GE(found, built);
      for (int i = 0; i < 50; ++i) {
        const auto tid = static_cast<Tid>(own.below(model.next));
        EXPECT_TRUE(elf->exact(model.rows.at(tid)).has_value());
      }
    }
  };
  std::jthread first(query, 3), second(query, 4);
  for (int round = 0; round < 8; ++round) {
    elf->cache(GetParam().second);
    // Rows that come and go again: those that were built stay.
    const Tid tid = elf->insert(small_values(random, 1).rows[0]);
    if (round % 4 == 0) elf->compact(nullptr);
    EXPECT_TRUE(elf->erase(tid));
    if (round % 3 == 0) elf->cache(CachePolicy::none());
  }
  done = true;
}

class Caches : public ::testing::Test {
 protected:
  Caches() {
    build(*elf_, columns_of(model_, kDims));
    EXPECT_TRUE(elf_->elf_stats().levels.empty());
  }

  void set(const CachePolicy& policy) {
    elf_->cache(policy);
    elf_->wait_for_cache();
  }

  /// Looks for all rows, one by one.
  ElfStats look_up_all() {
    for (const auto& [tid, row] : model_.rows) elf_->exact(row);
    return elf_->elf_stats();
  }

  util::Random random_{5};
  Model model_ = small_values(random_, 3000);
  TestElf elf_{kDims};
};

TEST_F(Caches, StaticLevelsServeTheFirstDimensions) {
  set(CachePolicy::static_levels(3));
  const ElfStats stats = look_up_all();
  ASSERT_EQ(stats.levels.size(), kDims);
  for (unsigned d = 0; d < 3; ++d) {
    EXPECT_EQ(stats.levels[d].hits, 3000u) << d;
    EXPECT_EQ(stats.levels[d].misses, 0u) << d;
  }
  EXPECT_EQ(stats.levels[3].hits, 0u);
  EXPECT_GT(stats.levels[3].misses, 0u);
  EXPECT_GT(stats.lines_saved, 3000u);
}

TEST_F(Caches, AHybridServesEverything) {
  set(CachePolicy::hybrid());
  const ElfStats stats = look_up_all();
  for (const ElfLevel& level : stats.levels) EXPECT_EQ(level.misses, 0u);
  EXPECT_EQ(stats.levels[0].hits, 3000u);
  EXPECT_GE(stats.cache_bytes, stats.elf_bytes / 2);
}

TEST_F(Caches, ADynamicCacheServesWhatIsVisitedAgain) {
  set(CachePolicy::dynamic(1 << 22));
  look_up_all();
  look_up_all();
  const ElfStats before = elf_->elf_stats();
  const ElfStats after = look_up_all();
  EXPECT_GT(after.levels[1].hits - before.levels[1].hits, 2900u);
  EXPECT_GT(after.levels[2].hits - before.levels[2].hits, 2900u);
  EXPECT_LE(after.cache_bytes, std::uint64_t{1} << 22);
}

TEST_F(Caches, ADynamicCacheKeepsItsBudget) {
  for (const auto eviction : {CachePolicy::Eviction::recency, CachePolicy::Eviction::probability}) {
    set(CachePolicy::dynamic(8000, eviction));
    look_up_all();
    const ElfStats stats = look_up_all();
    EXPECT_LE(stats.cache_bytes, 8000u);
    EXPECT_GT(stats.cache_bytes, 2000u);
    EXPECT_GT(stats.levels[1].hits + stats.levels[2].hits, 0u);
  }
}

// The lists with the most rows below them, so all of a level before any of the next one here.
TEST_F(Caches, ProbabilityFillsItsBudgetFromTheTop) {
  set(CachePolicy::probability(6000));
  const ElfStats stats = look_up_all();
  EXPECT_LE(stats.cache_bytes, 6000u + 200u);
  EXPECT_GT(stats.cache_bytes, 5000u);
  EXPECT_EQ(stats.levels[0].misses + stats.levels[1].misses, 0u);
  EXPECT_GT(stats.levels[2].hits, 2000u);
  EXPECT_GT(stats.levels[3].misses, 2000u);
}

/// Rows with many values in the first dimensions: lists are long, so that a small budget has room
/// for outlines only.
class Outlines : public ::testing::Test {
 protected:
  static constexpr unsigned kDimensions = 4;

  Outlines() {
    for (int i = 0; i < 8000; ++i) model_.add(any_row());
    build(*elf_, columns_of(model_, kDimensions));
  }

  /// The values of the third dimension have gaps.
  TestRow any_row() {
    const auto below = [&](std::uint64_t n) {
      return static_cast<std::uint32_t>(random_.below(n));
    };
    return {below(4), 1000 + below(8), 5 * below(50), below(3)};
  }

  void set(const CachePolicy& policy) {
    elf_->cache(policy);
    elf_->wait_for_cache();
  }

  util::Random random_{7};
  Model model_;
  TestElf elf_{kDimensions, Shape{12, 64}};
};

TEST_F(Outlines, AnswerForPresentAndAbsentRows) {
  set(CachePolicy::probability(3000));
  for (int i = 0; i < 3000; ++i) {
    TestRow row = any_row();
    if (i % 4 == 0) row[2] += static_cast<std::uint32_t>(random_.below(300));
    if (i % 9 == 0) row[2] = ~std::uint32_t{0};
    EXPECT_EQ(elf_->exact(row), model_.exact(row));
  }
  const ElfStats stats = elf_->elf_stats();
  EXPECT_LE(stats.cache_bytes, 3000u);
  EXPECT_GT(stats.levels[2].hits, 2000u);  // 32 lists, of which each takes 600 bytes
  const std::vector<ElfStep> steps = elf_->explain(elf_->box());
  EXPECT_EQ(steps[2].lists, 32u);
  EXPECT_EQ(steps[2].cached, 32u);
}

TEST_F(Outlines, LeadToListsForRanges) {
  set(CachePolicy::probability(3000));
  for (int i = 0; i < 30; ++i) {
    Box box = elf_->box();
    box.lower[0] = box.upper[0] = static_cast<std::uint32_t>(random_.below(5));
    box.lower[2] = static_cast<std::uint32_t>(random_.below(260));
    box.upper[2] = box.lower[2] + static_cast<std::uint32_t>(random_.below(60));
    expect_answers(*elf_, model_, box);
  }
}

TEST_F(Outlines, FollowTheWriters) {
  set(CachePolicy::probability(3000));
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 200; ++i) {
      const TestRow row = any_row();
      EXPECT_EQ(elf_->insert(row), model_.add(row));
      const auto tid = static_cast<Tid>(random_.below(model_.next));
      EXPECT_EQ(elf_->erase(tid), model_.rows.erase(tid) > 0);
    }
    EXPECT_TRUE(elf_->compact(nullptr));
    if (round % 2 == 0) elf_->wait_for_cache();
    for (int i = 0; i < 300; ++i) {
      const TestRow row = any_row();
      EXPECT_EQ(elf_->exact(row), model_.exact(row));
    }
  }
  elf_.expect_sound_pool();
}

TEST_F(Caches, ExplainTellsTheSharesOfRows) {
  Box box = elf_->box();
  std::vector<ElfStep> steps = elf_->explain(box);
  ASSERT_EQ(steps.size(), kDims);
  EXPECT_EQ(steps[0].lists, 1u);
  EXPECT_EQ(steps[0].highest_probability, 1);
  EXPECT_EQ(steps[1].lists, 7u);
  EXPECT_EQ(steps[1].cached, 0u);
  std::array<double, 7> shares{};
  for (const auto& [tid, row] : model_.rows) shares[row[0]] += 1.0 / 3000;
  EXPECT_NEAR(steps[1].highest_probability, *std::max_element(shares.begin(), shares.end()), 1e-9);
  EXPECT_NEAR(steps[1].lowest_probability, *std::min_element(shares.begin(), shares.end()), 1e-9);
  set(CachePolicy::static_levels(2));
  box.lower[0] = box.upper[0] = 3;
  steps = elf_->explain(box);
  EXPECT_EQ(steps[0].cached, 1u);
  EXPECT_EQ(steps[1].lists, 1u);
  EXPECT_EQ(steps[1].cached, 1u);
  EXPECT_EQ(steps[2].lists, 7u);
  EXPECT_EQ(steps[2].cached, 0u);
  EXPECT_NEAR(steps[1].lowest_probability, shares[3], 1e-9);
}

}  // namespace
}  // namespace perdix::detail::index::elf
