// An index that is no map, among indexes that are.
#include "samples/points/points.h"

#include <gtest/gtest.h>

#include <perdix/perdix.h>

#include "pm/test_files.h"

namespace perdix::samples::points {
namespace {

using testing_files::expect_error;

class PointsTest : public ::testing::Test {
 protected:
  testing_files::TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
  Pool pool_ = Pool::create(path_);
};

TEST_F(PointsTest, KeepsItsRows) {
  std::vector<Point> rows;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto table = Table::open_or_create(pool_, "points");
    EXPECT_EQ(table->add({i, ~i}), i);
    rows.push_back({i, ~i});
  }
  EXPECT_EQ(Table::open_or_create(pool_, "points")->rows(), rows);
}

TEST_F(PointsTest, PoolsKnowIt) {
  Table::open_or_create(pool_, "points")->add({1, 2});
  ASSERT_EQ(pool_.indexes().size(), 1U);
  EXPECT_EQ(pool_.indexes()[0].model, DataModel::points);
  EXPECT_EQ(pool_.indexes()[0].engine, kEngineName);
  EXPECT_TRUE(pool_.check().ok());
  EXPECT_EQ(pool_.check().pairs, 1U);
  pool_.close();
  EXPECT_TRUE(Pool::verify(path_).ok());
  pool_ = Pool::open(path_);
  const std::uint64_t allocated = pool_.info().allocated;
  pool_.drop("points");
  EXPECT_TRUE(pool_.indexes().empty());
  EXPECT_LT(pool_.info().allocated, allocated);
}

TEST_F(PointsTest, IsNoMap) {
  Table::open_or_create(pool_, "points")->add({1, 2});
  SpTree<std::uint64_t, std::uint64_t>(pool_, "pairs").put(1, 2);
  expect_error(Errc::unsupported, "holds points", [&] { Index::open(pool_, "points"); });
  expect_error(Errc::unsupported, "holds points", [&] {
    Index::open_or_create(pool_, {"new", std::string(kEngineName), Kind::u64, Kind::u64});
  });
  expect_error(Errc::wrong_engine, "sample_points",
               [&] { SpTree<std::uint64_t, std::uint64_t>(pool_, "points"); });
  expect_error(Errc::wrong_engine, "sptree", [&] { Table::open_or_create(pool_, "pairs"); });
  const auto engines = Index::engines();
  EXPECT_EQ(std::count(engines.begin(), engines.end(), kEngineName), 0);
  EXPECT_EQ(Table::open_or_create(pool_, "points")->rows(), std::vector{Point({1, 2})});
}

}  // namespace
}  // namespace perdix::samples::points
