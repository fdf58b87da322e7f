// What an index and its pool say about themselves.
#include <vector>

#include "support/contract.h"

namespace perdix::test {
namespace {

const Contract sizes("sizes_are_those_of_the_index", [](Rig& rig) {
  auto index = rig.open();
  Model model;
  const auto keys = rig.keys(40000);  // more than a leaf in every domain and build
  const std::uint64_t empty = index.stats().pm_bytes;
  fill(rig, index, model, keys);
  const IndexStats stats = index.stats();
  EXPECT_EQ(stats.pairs, keys.size());
  EXPECT_GT(stats.pm_bytes, empty);
  EXPECT_GE(stats.pm_bytes, keys.size() * 2 * sizeof(std::uint64_t)) << "less than its pairs need";
  EXPECT_GE(rig.pool().info().allocated, stats.pm_bytes) << "more than the pool has given away";
  EXPECT_GT(stats.dram_bytes, 0U);
  EXPECT_LE(rig.pool().info().allocated, rig.pool().info().size);
  EXPECT_LE(rig.pool().info().size, rig.pool().info().max_size);
});

const Contract sizes_after_reopen("sizes_are_the_same_after_reopening", [](Rig& rig) {
  std::optional<AnyIndex> index(rig.open());
  Model model;
  fill(rig, *index, model, rig.keys(800));
  rig.reopen(index);
  EXPECT_EQ(index->size(), model.size());  // what comes back later has come back by then
  const IndexStats before = index->stats();
  const std::uint64_t allocated = rig.pool().info().allocated;
  EXPECT_GE(before.recovery_seconds, 0);
  rig.reopen(index);
  EXPECT_EQ(index->size(), before.pairs);
  EXPECT_EQ(index->stats().resumed, 1);
  EXPECT_EQ(index->stats().pairs, before.pairs);
  EXPECT_EQ(index->stats().pm_bytes, before.pm_bytes);
  EXPECT_EQ(index->stats().leaves, before.leaves);
  EXPECT_EQ(rig.pool().info().allocated, allocated);
});

const Contract large_values_count("large_values_count", bytes_values, [](Rig& rig) {
  auto index = rig.open();
  const auto key = rig.keys(30).front();
  index.put(key, std::string(1 << 20, 'v'));
  EXPECT_GE(index.stats().pm_bytes, std::uint64_t{1} << 20);
  index.put(key, std::string("small"));
  EXPECT_LT(index.stats().pm_bytes, std::uint64_t{1} << 20);
});

const Contract pool_info("the_pool_says_what_it_is", [](Rig& rig) {
  const PoolInfo info = rig.pool().info();
  EXPECT_EQ(info.path, rig.path());
  EXPECT_EQ(info.durability, rig.options().durability);
  EXPECT_EQ(info.size, std::filesystem::file_size(rig.path()));
  EXPECT_GT(info.format_version, 0U);
});

const Contract checks_count("check_visits_everything", [](Rig& rig) {
  const auto keys = rig.keys(300);
  {
    auto first = rig.open("first");
    auto second = rig.open("second");
    Model model;
    fill(rig, first, model, keys);
    fill(rig, second, model, keys);
    EXPECT_EQ(first.check().pairs, keys.size());
    EXPECT_GT(first.check().blocks, 0U);
  }
  const CheckReport report = rig.pool().check();
  EXPECT_TRUE(report.ok()) << problems_of(report);
  EXPECT_EQ(report.pairs, 2 * keys.size());
});

const Contract verify("verify_finds_nothing_in_a_sound_pool", [](Rig& rig) {
  {
    auto index = rig.open();
    Model model;
    fill(rig, index, model, rig.keys(200));
  }
  EXPECT_EQ(error_of([&] { Pool::verify(rig.path(), rig.options()); }), Errc::in_use);
  rig.close_pool();
  const CheckReport report = Pool::verify(rig.path(), rig.options());
  EXPECT_TRUE(report.ok()) << problems_of(report);
  rig.open_pool();
});

}  // namespace
}  // namespace perdix::test
