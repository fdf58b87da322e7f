// What a pool knows of its indexes, on a directory in memory of its own.
#include "pool/index_table.h"

#include <memory>

#include <gtest/gtest.h>

#include "pm/test_files.h"
#include "pool/layout.h"

namespace perdix::detail::pool {
namespace {

using Slots = std::vector<IndexTable::Slot>;

IndexInfo info_of(const std::string& name) { return {name, "none", Kind::u64, Kind::u64}; }

class IndexTableTest : public testing::Test {
 protected:
  const pm::Persister pm_{pm::Domain::cpu_cache, false};
  const std::unique_ptr<DirectoryEntry[]> entries_ =
      std::make_unique<DirectoryEntry[]>(kDirectoryEntries);
  IndexTable table_{entries_.get(), pm_, "the pool"};
};

TEST_F(IndexTableTest, ListsLiveIndexesByName) {
  for (const std::string name : {"b", "c", "a"}) table_.add(info_of(name));
  table_.begin_drop(table_.slot_of("c"));
  std::string names;
  for (const IndexInfo& info : table_.live()) names += info.name;
  EXPECT_EQ(names, "ab");
  EXPECT_FALSE(table_.find("c"));
  testing_files::expect_error(Errc::not_found, "pool 'the pool' has no index 'c'",
                              [&] { table_.slot_of("c"); });
}

TEST_F(IndexTableTest, IsInUseWhileAnIndexHasAHandle) {
  const auto slot = table_.add(info_of("a"));
  table_.require_may_open(slot, info_of("a"));
  table_.add_handle(slot);
  testing_files::expect_error(Errc::in_use, "index 'a' of pool 'the pool'",
                              [&] { table_.require_may_open(slot, info_of("a")); });
  testing_files::expect_error(Errc::in_use, "'a'", [&] { table_.require_all_closed(); });
  table_.remove_handle(slot);
  table_.require_all_closed();
}

/// Another engine is told first: the index would not open when it is closed either.
TEST_F(IndexTableTest, TellsAWrongEngineBeforeAHandle) {
  const auto slot = table_.add(info_of("a"));
  table_.add_handle(slot);
  IndexInfo other = info_of("a");
  other.engine = "other";
  testing_files::expect_error(Errc::wrong_engine, "'a'",
                              [&] { table_.require_may_open(slot, other); });
}

TEST_F(IndexTableTest, CountsWhatIsClaimedForIndexes) {
  const auto a = table_.add(info_of("a"));
  const auto b = table_.add(info_of("b"));
  EXPECT_EQ(table_.claimed(), 0u);
  table_.claim_of(table_.root(a)) = 3;
  table_.claim_of(table_.root(b)) = 4;
  table_.begin_drop(b);
  EXPECT_EQ(table_.claimed(), 7u);
  table_.add_handle(b);
  table_.finish_drop(b);
  EXPECT_EQ(table_.claimed(), 3u);
  EXPECT_EQ(table_.add(info_of("c")), b);
  EXPECT_EQ(table_.claimed(), 3u) << "a new index has none";
  entries_[a].claim = kMaxPoolSize;
  testing_files::expect_error(Errc::corrupt, "damaged", [&] { table_.check(); });
}

TEST_F(IndexTableTest, LeavesADropThatWasPostponed) {
  const auto a = table_.add(info_of("a"));
  const auto b = table_.add(info_of("b"));
  for (const auto slot : {a, b}) {
    table_.begin_drop(slot);
    table_.add_handle(slot);
  }
  EXPECT_TRUE(table_.dropping().empty()) << "both are being dropped";
  table_.postpone_drop(a, "it is damaged");
  table_.remove_handle(a);
  EXPECT_EQ(table_.dropping(), Slots{a});
  const auto drops = table_.unfinished_drops();
  ASSERT_EQ(drops.size(), 1U);
  EXPECT_EQ(drops[0].index.name, "a");
  EXPECT_EQ(drops[0].why, "it is damaged");
}

TEST_F(IndexTableTest, HasAFreeEntryAfterADrop) {
  const auto slot = table_.add(info_of("a"));
  table_.add_handle(slot);
  table_.begin_drop(slot);
  table_.postpone_drop(slot, "once");
  table_.finish_drop(slot);
  EXPECT_EQ(table_.handles(slot), 0U);
  EXPECT_EQ(table_.add(info_of("b")), slot);
  table_.begin_drop(slot);
  EXPECT_EQ(table_.unfinished_drops().at(0).why, "the process had no memory") << "not that of a";
}

}  // namespace
}  // namespace perdix::detail::pool
