// The statistics of an index and its pool.
#include <vector>

#include "support/contract.h"

namespace perdix::test {
namespace {

const Contract sizes("sizes_are_those_of_the_index", [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  const auto keys = fixture.keys(40000);  // more than a leaf in every domain and build
  const std::uint64_t empty = index.stats().pm_bytes;
  fill(fixture, index, model, keys);
  const IndexStats stats = index.stats();
  EXPECT_EQ(stats.pairs, keys.size());
  EXPECT_GT(stats.pm_bytes, empty);
  EXPECT_GE(stats.pm_bytes, keys.size() * 2 * sizeof(std::uint64_t)) << "less than its pairs need";
  EXPECT_GE(fixture.pool().info().allocated, stats.pm_bytes) << "more than the pool has given away";
  EXPECT_GT(stats.dram_bytes, 0U);
  EXPECT_LE(fixture.pool().info().allocated, fixture.pool().info().size);
  EXPECT_LE(fixture.pool().info().size, fixture.pool().info().max_size);
});

const Contract sizes_after_reopen("sizes_are_the_same_after_reopening", [](Fixture& fixture) {
  std::optional<AnyIndex> index(fixture.open());
  Model model;
  fill(fixture, *index, model, fixture.keys(800));
  fixture.reopen(index);
  EXPECT_EQ(index->size(), model.size());  // what comes back later has come back by then
  const IndexStats before = index->stats();
  const std::uint64_t allocated = fixture.pool().info().allocated;
  EXPECT_GE(before.recovery_seconds, 0);
  fixture.reopen(index);
  EXPECT_EQ(index->size(), before.pairs);
  EXPECT_EQ(index->stats().resumed, 1);
  EXPECT_EQ(index->stats().pairs, before.pairs);
  EXPECT_EQ(index->stats().pm_bytes, before.pm_bytes);
  EXPECT_EQ(index->stats().leaves, before.leaves);
  EXPECT_EQ(fixture.pool().info().allocated, allocated);
});

const Contract large_values_count("large_values_count", bytes_values, [](Fixture& fixture) {
  auto index = fixture.open();
  const auto key = fixture.keys(30).front();
  index.put(key, std::string(1 << 20, 'v'));
  EXPECT_GE(index.stats().pm_bytes, std::uint64_t{1} << 20);
  index.put(key, std::string("small"));
  EXPECT_LT(index.stats().pm_bytes, std::uint64_t{1} << 20);
});

const Contract pool_info("the_pool_says_what_it_is", [](Fixture& fixture) {
  const PoolInfo info = fixture.pool().info();
  EXPECT_EQ(info.path, fixture.path());
  EXPECT_EQ(info.durability, fixture.options().durability);
  EXPECT_EQ(info.size, std::filesystem::file_size(fixture.path()));
  EXPECT_GT(info.format_version, 0U);
});

const Contract checks_count("check_visits_everything", [](Fixture& fixture) {
  const auto keys = fixture.keys(300);
  {
    auto first = fixture.open("first");
    auto second = fixture.open("second");
    Model model;
    fill(fixture, first, model, keys);
    fill(fixture, second, model, keys);
    EXPECT_EQ(first.check().pairs, keys.size());
    EXPECT_GT(first.check().blocks, 0U);
  }
  const CheckReport report = fixture.pool().check();
  EXPECT_TRUE(report.ok()) << problems_of(report);
  EXPECT_EQ(report.pairs, 2 * keys.size());
});

const Contract verify("verify_finds_nothing_in_a_sound_pool", [](Fixture& fixture) {
  {
    auto index = fixture.open();
    Model model;
    fill(fixture, index, model, fixture.keys(200));
  }
  EXPECT_EQ(error_of([&] { Pool::verify(fixture.path(), fixture.options()); }), Errc::in_use);
  fixture.close_pool();
  const CheckReport report = Pool::verify(fixture.path(), fixture.options());
  EXPECT_TRUE(report.ok()) << problems_of(report);
  fixture.open_pool();
});

}  // namespace
}  // namespace perdix::test
