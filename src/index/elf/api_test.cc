// The public class: what it refuses, and that a refusal changes nothing.
#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/elf.h>
#include <perdix/error.h>
#include <perdix/pool.h>

#include "pm/test_files.h"

namespace perdix {
namespace {

using testing_files::expect_error;
using Values = std::vector<std::uint32_t>;

class ElfApi : public ::testing::Test {
 protected:
  /// Rows (0, 10), (1, 11), ...
  void build(Elf& elf, std::uint32_t rows) {
    Values first(rows), second(rows);
    for (std::uint32_t i = 0; i < rows; ++i) {
      first[i] = i;
      second[i] = 10 + i;
    }
    const std::vector<std::span<const std::uint32_t>> columns = {first, second};
    EXPECT_TRUE(elf.build(columns));
  }

  testing_files::TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
  Pool pool_ = Pool::create(path_);
};

TEST_F(ElfApi, AnswersAllKindsOfQueries) {
  Elf elf(pool_, "t", 2);
  build(elf, 5);
  EXPECT_EQ(elf.dimensions(), 2u);
  EXPECT_EQ(elf.exact(Values{3, 13}), 3u);
  EXPECT_EQ(elf.exact(Values{3, 12}), std::nullopt);
  EXPECT_EQ(elf.range(Values{1, 0}, Values{4, 13}), (std::vector<Elf::Tid>{1, 2, 3}));
  EXPECT_EQ(elf.count(Values{1, 0}, Values{4, 13}), 3u);
  EXPECT_EQ(elf.partial({{1, {12, 13}}}), (std::vector<Elf::Tid>{2, 3}));
  EXPECT_EQ(elf.partial({{1, {12, 13}}, {1, {13, 99}}}), (std::vector<Elf::Tid>{3}));
  EXPECT_EQ(elf.count({{0, {0, 1}}, {0, {2, 3}}}), 0u);
  EXPECT_EQ(elf.insert(Values{9, 9}), 5u);
  EXPECT_TRUE(elf.erase(0));
  EXPECT_FALSE(elf.erase(0));
  EXPECT_EQ(elf.size(), 5u);
  EXPECT_EQ(elf.stats().rows, 5u);
  EXPECT_EQ(elf.stats().delta_rows, 1u);
  EXPECT_TRUE(elf.compact());
  EXPECT_EQ(elf.stats().delta_rows, 0u);
  EXPECT_EQ(elf.exact(Values{9, 9}), 5u);
  EXPECT_TRUE(elf.check().ok());
}

/// A call may meet a table that is being made, and one that is being freed.
TEST_F(ElfApi, StatsWorkBesideBuilds) {
  Elf elf(pool_, "t", 2);
  build(elf, 500);
  std::atomic<bool> done = false;
  std::thread builder([&] {
    for (std::uint32_t i = 0; i < 60; ++i) {
      build(elf, 500);
      elf.insert(Values{i, i});
      elf.compact();
    }
    done = true;
  });
  std::uint64_t asked = 0;
  for (; !done || asked == 0; ++asked) {
    const ElfStats stats = elf.stats();
    ASSERT_GE(stats.rows, 500u);
    ASSERT_LE(stats.rows, 501u);
    ASSERT_GT(stats.pm_bytes, 0u);
    ASSERT_GT(stats.elf_bytes, 0u);
    ASSERT_LE(stats.delta_rows, 1u);
  }
  builder.join();
}

TEST_F(ElfApi, RefusesMeaninglessArguments) {
  Elf elf(pool_, "t", 2);
  build(elf, 5);
  const Values three = {1, 2, 3};
  const Values two = {1, 2};
  expect_error(Errc::invalid_argument, "2 values, not 3", [&] { elf.insert(three); });
  expect_error(Errc::invalid_argument, "2 values, not 3", [&] { elf.exact(three); });
  expect_error(Errc::invalid_argument, "2 values, not 3", [&] { elf.range(two, three); });
  expect_error(Errc::invalid_argument, "cross", [&] { elf.count(two, Values{1, 1}); });
  expect_error(Errc::invalid_argument, "cross", [&] { elf.partial({{0, {2, 1}}}); });
  expect_error(Errc::invalid_argument, "none with the number 2", [&] { elf.partial({{2, {}}}); });
  const std::vector<std::span<const std::uint32_t>> uneven = {two, three};
  expect_error(Errc::invalid_argument, "2 and 3 rows", [&] { elf.build(uneven); });
  const std::vector<std::span<const std::uint32_t>> one = {two};
  expect_error(Errc::invalid_argument, "of 1 columns", [&] { elf.build(one); });
  EXPECT_EQ(elf.size(), 5u);
  EXPECT_TRUE(elf.check().ok());
}

TEST_F(ElfApi, KnowsItsDimensions) {
  expect_error(Errc::invalid_argument, "1 to 32", [&] { Elf(pool_, "t", 0); });
  expect_error(Errc::invalid_argument, "1 to 32", [&] { Elf(pool_, "t", 33); });
  expect_error(Errc::not_found, "t", [&] { Elf(pool_, "t"); });
  EXPECT_TRUE(pool_.indexes().empty());
  { Elf elf(pool_, "t", 2); }
  expect_error(Errc::wrong_kind, "2 dimensions, not 3", [&] { Elf(pool_, "t", 3); });
  Elf elf(pool_, "t");
  EXPECT_EQ(elf.dimensions(), 2u);
  expect_error(Errc::in_use, "t", [&] { Elf(pool_, "t", 2); });
}

TEST_F(ElfApi, PassesTheCallersExceptionsOn) {
  Elf elf(pool_, "t", 2);
  build(elf, 5);
  const auto throwing = [](auto) -> bool { throw std::domain_error("mine"); };
  EXPECT_THROW(elf.range(Values{0, 0}, Values{9, 99}, throwing), std::domain_error);
  EXPECT_THROW(elf.compact(throwing), std::domain_error);
  const Values column = {1, 2, 3};
  const std::vector<std::span<const std::uint32_t>> columns = {column, column};
  EXPECT_THROW(elf.build(columns, throwing), std::domain_error);
  EXPECT_FALSE(elf.build(columns, [](double) { return false; }));
  EXPECT_EQ(elf.size(), 5u);
  EXPECT_TRUE(elf.check().ok());
  EXPECT_TRUE(elf.compact());
}

// A change that a full pool refuses leaves the table as it was, and leaves space for the changes
// that it accepts.
TEST_F(ElfApi, AFullPoolChangesNothing) {
  PoolOptions options;
  options.max_size = std::uint64_t{32} << 20;
  const Pool small = Pool::create(directory_.file("small.pool"), options);
  Elf elf(small, "t", 2);
  build(elf, 1000);
  Values column(4'000'000);
  for (std::uint32_t i = 0; i < column.size(); ++i) column[i] = i / 2;
  const std::vector<std::span<const std::uint32_t>> columns = {column, column};
  expect_error(Errc::out_of_space, "", [&] { elf.build(columns); });
  EXPECT_EQ(elf.size(), 1000u);
  EXPECT_EQ(elf.exact(Values{77, 87}), 77u);
  build(elf, 50'000);
  EXPECT_EQ(elf.size(), 50'000u);
  EXPECT_TRUE(elf.check().ok());
}

TEST_F(ElfApi, SurvivesReopening) {
  {
    Elf elf(pool_, "t", 2);
    build(elf, 5);
    elf.insert(Values{7, 7});
  }
  pool_.close();
  EXPECT_TRUE(Pool::verify(path_).ok());
  pool_ = Pool::open(path_);
  Elf elf(pool_, "t");
  Elf moved = std::move(elf);
  EXPECT_EQ(moved.exact(Values{7, 7}), 5u);
  EXPECT_EQ(moved.size(), 6u);
}

}  // namespace
}  // namespace perdix
