// Elf against brute force: builds, inserts, erases and compacts of random rows, reopened at times.
#include <numeric>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "index/elf/test_elf.h"
#include "pm/test_files.h"

namespace perdix::detail::index::elf {
namespace {

Model random_rows(util::Random& random, unsigned dimensions, std::size_t count) {
  Model model;
  for (std::size_t i = 0; i < count; ++i) model.add(random_row(random, dimensions));
  return model;
}

class Dimensions : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Elf, Dimensions, ::testing::Values(1, 2, 3, 7, 32));

TEST_P(Dimensions, BuildsFindAllRows) {
  util::Random random(GetParam());
  TestElf elf(GetParam());
  for (const std::size_t rows : {1, 2, 40, 700, 0, 300}) {
    SCOPED_TRACE(rows);
    const Model model = random_rows(random, GetParam(), rows);
    EXPECT_TRUE(build(*elf, columns_of(model, GetParam())));
    expect_rows(*elf, model, random);
    elf.expect_sound_pool();
    elf.reopen();
    expect_rows(*elf, model, random);
  }
}

TEST_P(Dimensions, WritersAndCompactsAgreeWithBruteForce) {
  util::Random random(100 + GetParam());
  TestElf elf(GetParam());
  Model model;
  for (int step = 0; step < 600; ++step) {
    const auto choice = random.below(100);
    if (choice < 55) {
      const TestRow row = random_row(random, GetParam());
      EXPECT_EQ(elf->insert(row), model.add(row));
    } else if (choice < 95) {
      const auto tid = static_cast<Tid>(random.below(model.next + 2));
      EXPECT_EQ(elf->erase(tid), model.rows.erase(tid) > 0) << tid;
    } else if (choice < 98) {
      EXPECT_TRUE(elf->compact(nullptr));
    } else {
      elf.reopen();
    }
    if (step % 25 == 0) expect_rows(*elf, model, random);
  }
  expect_rows(*elf, model, random);
  elf.expect_sound_pool();
  EXPECT_TRUE(elf->compact(nullptr));
  expect_rows(*elf, model, random);
  elf.expect_sound_pool();
}

TEST(Elf, KeepsTheUsualShapeForManyRows) {
  util::Random random(7);
  TestElf elf(4, Shape{});
  Model model;
  for (int i = 0; i < 20000; ++i) {
    model.add({static_cast<std::uint32_t>(random.below(3)),
               static_cast<std::uint32_t>(random.below(100)), random_value(random),
               static_cast<std::uint32_t>(random())});
  }
  EXPECT_TRUE(build(*elf, columns_of(model, 4)));
  expect_rows(*elf, model, random);
  elf.expect_sound_pool();
}

// A list that is longer than a slot takes several, and the first list is no array where its values
// are far apart.
TEST(Elf, HasListsLongerThanASlot) {
  util::Random random(8);
  for (const std::uint32_t distance : {1U, 1000U}) {
    TestElf elf(2);
    Model model;
    for (std::uint32_t i = 0; i < 500; ++i) model.add({i * distance, 5});
    for (std::uint32_t i = 0; i < 500; ++i) model.add({77, i * distance});
    EXPECT_TRUE(build(*elf, columns_of(model, 2)));
    expect_rows(*elf, model, random);
    elf.expect_sound_pool();
  }
}

TEST(Elf, ACancelledBuildChangesNothing) {
  util::Random random(9);
  TestElf elf(3);
  const Model model = random_rows(random, 3, 100);
  EXPECT_TRUE(build(*elf, columns_of(model, 3)));
  elf->erase(3);
  const std::uint64_t allocated = elf.allocated();
  const auto cancel = [](double) { return false; };
  EXPECT_FALSE(build(*elf, columns_of(random_rows(random, 3, 200000), 3), cancel));
  EXPECT_FALSE(elf->compact(cancel));
  EXPECT_LE(elf.allocated(), allocated + 256);
  Model left = model;
  left.rows.erase(3);
  expect_rows(*elf, left, random);
  elf.expect_sound_pool();
}

TEST(Elf, BuildReportsProgress) {
  util::Random random(10);
  TestElf elf(3, Shape{});
  const Model model = random_rows(random, 3, 200000);
  std::vector<double> shares;
  EXPECT_TRUE(build(*elf, columns_of(model, 3), [&](double share) {
    shares.push_back(share);
    return true;
  }));
  EXPECT_GE(shares.size(), 3u);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1);
}

// Also where all is sorted before the first node is made, and sorted anew for each dimension.
TEST(Elf, ABuildOfNearlyEqualRowsReportsProgress) {
  constexpr unsigned kDimensions = 6;
  constexpr std::size_t kRows = 300'000;
  std::vector<std::vector<std::uint32_t>> columns(kDimensions,
                                                  std::vector<std::uint32_t>(kRows, 7));
  columns[0][0] = 8;
  columns[kDimensions - 1][1] = 8;
  TestElf elf(kDimensions, Shape{});
  double before = 0, widest = 0;
  std::vector<double> shares;
  const auto report = [&](double share) {
    shares.push_back(share);
    widest = std::max(widest, share - before);
    before = share;
    return true;
  };
  EXPECT_TRUE(build(*elf, columns, report));
  EXPECT_EQ(shares.front(), 0) << "in the first sort";
  EXPECT_LE(widest, 0.4);
  EXPECT_EQ(shares.back(), 1);
  const auto calls = shares.size();
  EXPECT_GT(calls, kDimensions * kRows >> 16);
  for (std::size_t last = 0; last < calls; last += calls / 5) {
    std::size_t left = last;
    EXPECT_FALSE(build(*elf, columns, [&](double) { return left-- > 0; }));
  }
  before = widest = 0;
  EXPECT_TRUE(elf->compact(report));
  EXPECT_LE(widest, 0.4);
  EXPECT_EQ(elf->size(), kRows);
}

// Calls of a visitor or a progress function.
TEST(Elf, CallbacksMayCallTheTable) {
  util::Random random(11);
  TestElf elf(2);
  Model model = random_rows(random, 2, 5000);
  EXPECT_TRUE(build(*elf, columns_of(model, 2)));
  const std::uint64_t before = model.rows.size();
  std::vector<Tid> shown;
  auto visit = [&](Tid tid) {
    shown.push_back(tid);
    if (shown.size() % 1000 == 1) {
      elf->insert(random_row(random, 2));
      EXPECT_TRUE(elf->compact([&](double) {
        elf->erase(elf->insert(random_row(random, 2)));
        testing_files::expect_error(Errc::in_use, "already", [&] { elf->compact(nullptr); });
        return true;
      }));
    }
    return true;
  };
  elf->show(elf->box(), visit);
  std::sort(shown.begin(), shown.end());
  EXPECT_EQ(shown, model.in(elf->box()));
  EXPECT_EQ(elf->size(), before + 5);
  elf.expect_sound_pool();
}

// Of the rows that a compact has taken, and of those that come after it.
TEST(Elf, ErasesDuringACompactStay) {
  util::Random random(14);
  TestElf elf(2);
  Model model = random_rows(random, 2, 100);
  EXPECT_TRUE(build(*elf, columns_of(model, 2)));
  for (int i = 0; i < 10; ++i) {
    const TestRow row = random_row(random, 2);
    EXPECT_EQ(elf->insert(row), model.add(row));
  }
  const auto write = [&](double) {
    const TestRow row = random_row(random, 2);
    EXPECT_EQ(elf->insert(row), model.add(row));
    for (const Tid tid : {5U, 70U, 104U, 110U}) {
      EXPECT_TRUE(elf->erase(tid));
      EXPECT_FALSE(elf->erase(tid));
      model.rows.erase(tid);
    }
    EXPECT_EQ(elf->insert(row), model.add(row));
    return true;
  };
  EXPECT_TRUE(elf->compact(write));
  expect_rows(*elf, model, random);
  elf.reopen();
  expect_rows(*elf, model, random);
  elf.expect_sound_pool();
}

// Rows move from the segments to the lists while they are shown.
TEST(Elf, AStreamShowsEachRowOnceAcrossCompacts) {
  util::Random random(12);
  TestElf elf(2, Shape{kMinSlotShift, 512});
  Model model = random_rows(random, 2, 3000);
  EXPECT_TRUE(build(*elf, columns_of(model, 2)));
  for (int i = 0; i < 6000; ++i) {
    const TestRow row = random_row(random, 2);
    EXPECT_EQ(elf->insert(row), model.add(row));
  }
  std::vector<Tid> shown;
  auto visit = [&](Tid tid) {
    shown.push_back(tid);
    if (shown.size() == 4500 || shown.size() == 5000) elf->compact(nullptr);
    return true;
  };
  elf->show(elf->box(), visit);
  std::sort(shown.begin(), shown.end());
  EXPECT_EQ(shown, model.in(elf->box()));
}

TEST(Elf, InsertsKeepTheDeltaSmall) {
  util::Random random(15);
  TestElf elf(3, Shape{kMinSlotShift, 4, 20});
  Model model;
  std::uint64_t most = 0;
  for (int i = 0; i < 400; ++i) {
    const TestRow row = random_row(random, 3);
    EXPECT_EQ(elf->insert(row), model.add(row));
    const std::uint64_t delta = elf->elf_stats().delta_rows;
    ASSERT_LE(delta, std::max<std::uint64_t>(20, model.rows.size() / 4));
    most = std::max(most, delta);
    if (i == 150) elf.reopen();
  }
  EXPECT_GT(most, 50U) << "a larger table may have a larger delta";
  expect_rows(*elf, model, random);
  elf.expect_sound_pool();
}

TEST(Elf, InsertsOfSeveralThreadsKeepTheDeltaSmall) {
  TestElf elf(1, Shape{kMinSlotShift, 64, 100});
  std::vector<std::thread> writers;
  for (std::uint32_t thread = 0; thread < 3; ++thread) {
    writers.emplace_back([&, thread] {
      for (std::uint32_t i = 0; i < 1000; ++i) elf->insert(std::vector{3 * i + thread});
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(elf->count(elf->box()), 3000U);
  for (std::uint32_t value = 0; value < 3000; ++value)
    ASSERT_TRUE(elf->exact(std::vector{value})) << value;
  elf->insert(std::vector{3000U});  // no other thread compacts now
  EXPECT_LE(elf->elf_stats().delta_rows, 3001U / 4);
  elf.expect_sound_pool();
}

TEST(Elf, DropsLeaveNothing) {
  util::Random random(13);
  TestElf elf(3);
  elf->insert(random_row(random, 3));
  const std::uint64_t empty = [&] {
    elf.drop();
    return elf.allocated();
  }();
  EXPECT_TRUE(build(*elf, columns_of(random_rows(random, 3, 500), 3)));
  for (int i = 0; i < 50; ++i) elf->insert(random_row(random, 3));
  elf.drop();
  EXPECT_EQ(elf.allocated(), empty);
  elf.expect_sound_pool();
}

}  // namespace
}  // namespace perdix::detail::index::elf
