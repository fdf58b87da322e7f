#include "index/elf/current_version.h"

#include <memory>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

#include "epoch/guard.h"
#include "index/elf/test_elf.h"

namespace perdix::detail::index::elf {
namespace {

/// A table in a pool, of which Versions can be opened.
class TestTable : public TestPool<TestTable> {
 public:
  using TestPool<TestTable>::core;

  TestTable() {
    Table table(core().open_index(info_), 2, kSmallShape);
    Model model;
    for (std::uint32_t i = 0; i < 1000; ++i) model.add({i % 10, i});
    build(table, columns_of(model, 2));
  }

  std::unique_ptr<Version> version() {
    const pool::IndexHandle handle = core().open_index(info_);
    const Root& root = *core().at<Root>(handle.root());
    return std::make_unique<Version>(core(), root, root.tables[root.current]);
  }

 private:
  const IndexInfo info_ = [] {
    IndexInfo info{"t", std::string(kEngineName), Kind::u64, Kind::u64};
    info.model = DataModel::points;
    return info;
  }();
};

CachePolicy full() {
  CachePolicy policy;
  policy.full = true;
  return policy;
}

TEST(CurrentVersion, HasTheCacheOfItsPolicyAlsoWhenItIsReplaced) {
  TestTable table;
  CurrentVersion current(table.core().reclaimer());
  EXPECT_FALSE(current.is_open());
  current.open(table.version());
  ASSERT_TRUE(current.is_open());
  EXPECT_EQ(current.get().cache(), nullptr);
  current.cache(full());
  EXPECT_TRUE(current.policy().full);
  EXPECT_NE(current.get().cache(), nullptr);
  current.wait_for_cache();
  EXPECT_FALSE(current.is_filling());

  const Version* const before = &current.get();
  auto next = table.version();
  const Version* const expected = next.get();
  const auto replaced = current.replace(std::move(next), [&] {
    EXPECT_EQ(&current.get(), before) << "it counts only from the commit on";
    EXPECT_NE(expected->cache(), nullptr) << "nothing fails behind the commit";
  });
  EXPECT_EQ(replaced.get(), before);
  EXPECT_EQ(&current.get(), expected);
  current.wait_for_cache();
  ElfStats stats;
  current.get().cache()->add_to(stats);
  EXPECT_GT(stats.dram_bytes, 0U);

  current.cache(CachePolicy{});
  EXPECT_EQ(current.get().cache(), nullptr);
}

TEST(CurrentVersion, StaysWhereTheCommitFails) {
  TestTable table;
  CurrentVersion current(table.core().reclaimer());
  current.open(table.version());
  const Version* const before = &current.get();
  EXPECT_THROW(current.replace(table.version(), [] { throw std::runtime_error("full"); }),
               std::runtime_error);
  EXPECT_EQ(&current.get(), before);
}

}  // namespace
}  // namespace perdix::detail::index::elf
