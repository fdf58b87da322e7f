// Pools and their indexes: drops that can't be carried out, engines that are not known,
// constructors that fail. None of it may cost anything but the index itself.
#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/papers/fastfair.h>
#include <perdix/papers/nbtree.h>
#include <perdix/perdix.h>
#include <perdix/tips_indexes.h>

#include "engine_list.h"
#include "index/test_options.h"
#include "pm/test_files.h"
#include "pool/directory.h"
#include "pool/layout.h"
#include "pool/pool_core.h"
#include "util/test_name.h"
#include "util/test_threads.h"

namespace perdix {
namespace {

using testing_files::expect_error;
using testing_files::TempDirectory;

constexpr std::uint64_t kUnit = detail::pool::kGrowthUnit;

PoolOptions options_of(std::uint64_t max_size) {
  PoolOptions options;
  options.plugins = tips::further_plugins();
  options.max_size = max_size;
  return options;
}

IndexOptions unlimited_buffers(std::string_view engine) {
  IndexOptions options;
  detail::index::set_if_there(options, engine, "dram_budget", kUnlimited);
  return options;
}

std::string key_of(std::uint64_t i) { return "key " + std::to_string(i * 2654435761 % 1000003); }

class PoolOfIndexes : public ::testing::TestWithParam<std::string> {
 protected:
  /// "good" is of another engine, so that what damages leaves by their mark leaves it alone.
  IndexInfo info(const std::string& name) const {
    const std::string other = GetParam() == "fastfair" ? "sptree" : "fastfair";
    return {name, name == "good" ? other : GetParam(), Kind::bytes, Kind::bytes};
  }
  std::unique_ptr<Index> make(const Pool& pool, const std::string& name) const {
    const detail::index::EngineTraits* traits =
        detail::index::find_traits(info(name).engine, EngineList());
    const IndexOptions small =
        traits->small != nullptr ? traits->small() : unlimited_buffers(info(name).engine);
    return Index::open_or_create(pool, info(name), small);
  }

  /// A closed pool with "bad", which has many leaves, and "good", which has one pair.
  void make_pool() {
    Pool pool = Pool::create(path_, options_of(4 * kUnit));
    for (std::uint64_t i = 0; i < 5000; ++i) make_once(pool, "bad").put(key_of(i), "value");
    make(pool, "good")->put("key", "value");
    kept_.reset();
    pool.close();
  }
  Index& make_once(const Pool& pool, const std::string& name) {
    if (kept_ == nullptr) kept_ = make(pool, name);
    return *kept_;
  }

  /// Damages one in five of the places where the file has the mark of a leaf; returns how many
  /// places there are.
  std::size_t damage(std::string_view magic) const {
    std::ifstream in(path_, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    std::size_t found = 0;
    std::fstream out(path_, std::ios::in | std::ios::out | std::ios::binary);
    for (std::size_t at = bytes.find(magic); at != std::string::npos;
         at = bytes.find(magic, at + 1)) {
      if (++found % 5 != 0) continue;
      out.seekp(static_cast<std::streamoff>(at));
      out.put('?');
    }
    return found;
  }

  /// Makes the directory say that an index has an engine that does not exist.
  void rename_engine(const std::string& index) const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    for (std::size_t slot = 0; slot < detail::pool::kDirectoryEntries; ++slot) {
      const auto at = static_cast<std::streamoff>(detail::pool::kDirectoryOffset +
                                                  slot * sizeof(detail::pool::DirectoryEntry));
      detail::pool::DirectoryEntry entry;
      file.seekg(at);
      file.read(reinterpret_cast<char*>(&entry), sizeof entry);
      if (std::string_view(reinterpret_cast<char*>(entry.name), entry.name_size) != index) continue;
      entry.engine[0] = 'X';
      entry.checksum = detail::pool::checksum_of(entry);
      file.seekp(at);
      file.write(reinterpret_cast<const char*>(&entry), sizeof entry);
      return;
    }
    FAIL() << "no index " << index;
  }

  void expect_good(const Pool& pool) const {
    EXPECT_EQ(make(pool, "good")->get("key"), "value");
    const auto fresh = make(pool, "fresh");
    fresh->put("a", "b");
    EXPECT_EQ(fresh->get("a"), "b");
  }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
  std::unique_ptr<Index> kept_;
};

TEST_P(PoolOfIndexes, ADamagedIndexCanBeDropped) {
  const std::string_view magic = detail::index::find_traits(GetParam(), EngineList())->magic;
  if (magic.empty()) GTEST_SKIP() << "its leaves have no mark that tells that they are damaged";
  make_pool();
  ASSERT_GT(damage(magic), 10U);
  {
    Pool pool = Pool::open(path_, options_of(4 * kUnit));
    pool.drop("bad");
    for (const IndexInfo& left : pool.indexes()) EXPECT_NE(left.name, "bad");
    ASSERT_EQ(pool.info().unfinished_drops.size(), 1U);
    EXPECT_EQ(pool.info().unfinished_drops[0].index.name, "bad");
    EXPECT_FALSE(pool.info().unfinished_drops[0].why.empty());
    expect_good(pool);
    make(pool, "bad")->put("its name", "is free");
  }
  for (int opening = 0; opening < 2; ++opening) {
    const Pool pool = Pool::open(path_, options_of(4 * kUnit));
    EXPECT_EQ(pool.info().unfinished_drops.size(), 1U);
    expect_good(pool);
    const CheckReport report = pool.check();
    ASSERT_EQ(report.problems.size(), 1U);
    EXPECT_NE(report.problems[0].find("'bad' was dropped"), std::string::npos);
  }
  EXPECT_EQ(Pool::verify(path_, options_of(4 * kUnit)).problems.size(), 1U);
}

TEST_P(PoolOfIndexes, AnUnknownEngineIsLeftAlone) {
  make_pool();
  rename_engine("bad");
  {
    Pool pool = Pool::open(path_, options_of(4 * kUnit));
    EXPECT_EQ(pool.indexes().size(), 2U);
    expect_error(Errc::unsupported, "doesn't have", [&] { pool.drop("bad"); });
    expect_error(Errc::unsupported, "doesn't have", [&] { Index::open(pool, "bad"); });
    EXPECT_EQ(pool.indexes().size(), 2U);
    EXPECT_TRUE(pool.info().unfinished_drops.empty());
    expect_good(pool);
  }
  const CheckReport report = Pool::verify(path_, options_of(4 * kUnit));
  EXPECT_TRUE(report.ok()) << report.problems.front();
  ASSERT_EQ(report.unknown.size(), 1U);
  EXPECT_NE(report.unknown[0].find("'bad'"), std::string::npos);
}

// As a later release may leave it, which was killed in a drop.
TEST_P(PoolOfIndexes, AnUnfinishedDropOfAnUnknownEngineWaits) {
  make_pool();
  {
    const Pool pool = Pool::open(path_, options_of(4 * kUnit));
    pool.core()->begin_drop("bad");
  }
  rename_engine("bad");
  const Pool pool = Pool::open(path_, options_of(4 * kUnit));
  ASSERT_EQ(pool.info().unfinished_drops.size(), 1U);
  EXPECT_NE(pool.info().unfinished_drops[0].why.find("doesn't have"), std::string::npos);
  expect_good(pool);
}

/// Fills the pool until nothing of a size fits, down to the smallest.
void fill_up(Index& index) {
  std::uint64_t i = 0;
  for (std::size_t size = 100'000; size > 0; size /= 2) {
    for (int failures = 0; failures < 20; ++i) {
      try {
        index.put(key_of(i), std::string(size, 'v'));
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), Errc::out_of_space);
        ++failures;
      }
    }
  }
}

// As a crash leaves one in its creation, before it has any block.
TEST_P(PoolOfIndexes, AnIndexThatHasNoSpaceToBeOpenedIsNoDamage) {
  const Pool pool = Pool::create(path_, options_of(kUnit));
  fill_up(*Index::open_or_create(pool, {"full", "fastfair", Kind::bytes, Kind::bytes}));
  pool.core()->open_index(info("bad"));
  const CheckReport report = pool.check();
  EXPECT_TRUE(report.ok()) << report.problems.front();
  // Their first nodes are small enough to find space.
  if (GetParam() == "fastfair" || GetParam() == "skiplist") return;
  ASSERT_EQ(report.unknown.size(), 1U);
  EXPECT_NE(report.unknown[0].find("'bad' needs space"), std::string::npos) << report.unknown[0];
}

TEST_P(PoolOfIndexes, AConstructorThatThrowsLeavesNoIndex) {
  Pool pool = Pool::create(path_, options_of(kUnit));
  const auto full = Index::open_or_create(pool, info("full"));
  const auto rest = Index::open_or_create(pool, {"rest", "fastfair", Kind::bytes, Kind::bytes});
  fill_up(*full);
  fill_up(*rest);  // what the other one gives back when it is asked to
  int failures = 0;
  const auto attempt = [&](const std::string& name, auto construct) {
    try {
      construct(name);
      pool.drop(name);  // there was room for it
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::out_of_space) << error.what();
      ++failures;
    }
    EXPECT_EQ(pool.indexes().size(), 2U) << name << " is there all the same";
  };
  using U64 = std::uint64_t;
  attempt("a", [&](auto name) { SpTree<U64, U64>(pool, name); });
  attempt("b", [&](auto name) {
    SpTree<std::string, std::string>(pool, name, {.dram_budget = kUnlimited});
  });
  attempt("c", [&](auto name) { NbTree<U64, std::string>(pool, name); });
  attempt("d", [&](auto name) { FastFair<std::string, U64>(pool, name); });
  for (const std::string& engine : Index::engines(tips::further_plugins())) {
    attempt("e", [&](const std::string& name) {
      Index::open_or_create(pool, {name, engine, Kind::u64, Kind::u64}, unlimited_buffers(engine));
    });
  }
  EXPECT_GT(failures, 0) << "there was room after all";
  EXPECT_TRUE(pool.info().unfinished_drops.empty());
}

// A constructor that gets some of its blocks gives them back.
TEST_P(PoolOfIndexes, AConstructorThatFindsHalfOfItsSpaceLeavesNoIndex) {
  Pool pool = Pool::create(path_, options_of(kUnit));
  const auto rest = Index::open_or_create(pool, {"rest", "fastfair", Kind::bytes, Kind::bytes});
  fill_up(*rest);
  for (unsigned freed = 0; freed < 12; ++freed) {
    try {
      Index::open_or_create(pool, info("new"));
      pool.drop("new");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::out_of_space) << error.what();
    }
    EXPECT_EQ(pool.indexes().size(), 1U) << freed;
    EXPECT_TRUE(pool.info().unfinished_drops.empty()) << freed;
    EXPECT_TRUE(rest->erase(key_of(freed)));  // 100 kB
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, PoolOfIndexes,
                         ::testing::ValuesIn(Index::engines(tips::further_plugins())),
                         [](const auto& engine) { return detail::util::test_name(engine.param); });

// Its directory: what README says about their number.
TEST(Pool, ThatWasMovedFromSaysSo) {
  const TempDirectory directory;
  Pool pool = Pool::create(directory.file("pool"), options_of(2 * kUnit));
  Pool other = std::move(pool);
  const auto says_so = [](auto call) {
    expect_error(Errc::invalid_argument, "this Pool object was moved from", call);
  };
  says_so([&] { pool.info(); });
  says_so([&] { (void)pool.huge_pages(); });
  says_so([&] { (void)pool.indexes(); });
  says_so([&] { pool.check(); });
  says_so([&] { pool.drop("a"); });
  says_so([&] { pool.close(); });
  says_so([&] { Index::open(pool, "a"); });
  says_so([&] { (SpTree<std::uint64_t, std::uint64_t>(pool, "a")); });
  pool = std::move(other);
  EXPECT_TRUE(pool.indexes().empty());
}

// In a child: what goes wrong ends the process.
TEST(Pool, CountsTheJournalAmongItsBlocks) {
  const TempDirectory directory;
  PoolOptions options;
  options.durability = Durability::power;
  options.journal_size = std::uint64_t{2} << 20;
  const auto pool = Pool::create(directory.file("test.pool"), options);
  SpTree<std::uint64_t, std::uint64_t>(pool, "a").put(1, 2);
  EXPECT_EQ(pool.info().journal_size, options.journal_size);
  EXPECT_EQ(pool.check().problems, std::vector<std::string>{});
}

TEST(Pool, IsWholeWhenAThreadWasCancelledInItsCalls) {
  const TempDirectory directory;
  const auto path = directory.file("pool");
  EXPECT_TRUE(testing_files::true_in_child([&] {
    return detail::util::ends_after([&] {
      PoolOptions options = options_of(4 * kUnit);
      options.durability = Durability::power;
      Pool::create(path, options).close();
      Pool pool = Pool::open(path, options);
      FastFair<std::uint64_t, std::string> index(pool, "i");
      for (std::uint64_t i = 0; i < 20; ++i) index.put(i, std::string(kUnit / 16, 'v'));
    });
  }));
  const Pool pool = Pool::open(path, options_of(4 * kUnit));
  EXPECT_TRUE(pool.info().was_clean);
  EXPECT_GT(pool.info().size, kUnit);
  EXPECT_EQ((FastFair<std::uint64_t, std::string>(pool, "i").size()), 20);
}

TEST(Pool, HoldsAThousandAndTwentyFourIndexes) {
  const TempDirectory directory(testing_files::memory_directory());
  const Pool pool = Pool::create(directory.file("test.pool"), options_of(4 * kUnit));
  for (std::size_t i = 0; i < detail::pool::kDirectoryEntries; ++i)
    FastFair<std::uint64_t, std::uint64_t>(pool, std::to_string(i));
  expect_error(Errc::out_of_space, "1024",
               [&] { FastFair<std::uint64_t, std::uint64_t>(pool, "one more"); });
}

TEST(Pool, VerifySaysThatASoundPoolMayLackPairs) {
  const TempDirectory directory(testing_files::memory_directory());
  const auto path = directory.file("p");
  const auto copy = directory.file("copy");
  Pool pool = Pool::create(path, options_of(2 * kUnit));
  FastFair<std::uint64_t, std::uint64_t>(pool, "points").put(1, 10);
  std::filesystem::copy_file(path, copy);
  pool.close();
  EXPECT_FALSE(Pool::verify(path).stores_may_be_missing);
  const CheckReport report = Pool::verify(copy);
  EXPECT_TRUE(report.ok()) << report.problems.front();
  EXPECT_TRUE(report.stores_may_be_missing);
  EXPECT_FALSE(Pool::verify(copy).stores_may_be_missing) << "accepted, and closed since";
}

// A process has addresses for 127 pools of a TiB; the next ones get fewer each.
TEST(Pool, MoreThanFitAtTheirFullSizeCanBeOpen) {
  const TempDirectory directory(testing_files::memory_directory());
  Pool::create(directory.file("0")).close();
  std::vector<Pool> pools;
  bool fewer = false;
  for (int i = 0; i < 20 && !fewer; ++i) {
    const auto path = directory.file(std::to_string(i));
    PoolOptions large;
    large.max_size = std::uint64_t{1} << 44;
    if (i > 0) Pool::create(path, options_of(2 * kUnit)).close();
    try {
      pools.push_back(Pool::open(path, large));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::out_of_space);
      fewer = true;
    }
  }
  ASSERT_TRUE(fewer);
  Pool next = Pool::create(directory.file("next"));
  EXPECT_GE(next.info().max_size, kUnit);
}

}  // namespace
}  // namespace perdix
