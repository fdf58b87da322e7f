#include "pool/pool_core.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <thread>
#include <utility>

#include "epoch/guard.h"
#include "pool/open_index.h"
#include "pool/origin.h"
#include "pool/test_pool.h"

namespace perdix::detail::pool {
namespace {

using testing_files::expect_error;
using testing_files::TempDirectory;

class PoolCoreTest : public ::testing::Test {
 protected:
  std::shared_ptr<PoolCore> create() { return PoolCore::create(path_, small_options()); }
  std::shared_ptr<PoolCore> open() { return PoolCore::open(path_, small_options()); }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
};

IndexHandle open_sptree(const std::shared_ptr<PoolCore>& core, std::string_view name) {
  return core->open_index(name, "sptree", Kind::u64, Kind::u64);
}

TEST_F(PoolCoreTest, SmallestPoolIsOneUnitThatIsReallyThere) {
  create()->close();
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), kGrowthUnit);
  EXPECT_GE(static_cast<std::uint64_t>(status.st_blocks) * 512, kGrowthUnit);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(PoolCoreTest, InfoSaysWhatThePoolIs) {
  PoolOptions options = small_options();
  options.initial_size = kGrowthUnit + 1;
  const auto core = PoolCore::create(path_, options);
  const PoolInfo info = core->info();
  EXPECT_EQ(info.path, path_);
  EXPECT_EQ(info.format_version, kFormatVersion);
  EXPECT_EQ(info.size, 2 * kGrowthUnit);
  EXPECT_EQ(info.max_size, options.max_size);
  EXPECT_EQ(info.durability, Durability::process);
  EXPECT_EQ(info.domain, "cpu_cache");
  EXPECT_FALSE(info.dax);
}

TEST_F(PoolCoreTest, KnowsWhetherItHadBeenClosed) {
  create()->close();
  EXPECT_TRUE(open()->info().was_clean);  // closed by its destructor
  EXPECT_TRUE(open()->info().was_clean);
  edit_superblock(
      path_, [](Superblock& s) { s.cleanness = static_cast<std::uint8_t>(Cleanness::unclean); });
  EXPECT_FALSE(open()->info().was_clean);
  EXPECT_TRUE(open()->info().was_clean);
}

TEST_F(PoolCoreTest, IsMarkedUncleanWhileOpen) {
  const auto unclean = static_cast<std::uint8_t>(Cleanness::unclean);
  const auto clean = static_cast<std::uint8_t>(Cleanness::clean);
  auto core = create();
  for (int copy : {0, 1}) EXPECT_EQ(read_copy(path_, copy).cleanness, unclean);
  core->close();
  for (int copy : {0, 1}) EXPECT_EQ(read_copy(path_, copy).cleanness, clean);
  core = open();
  for (int copy : {0, 1}) EXPECT_EQ(read_copy(path_, copy).cleanness, unclean);
}

TEST_F(PoolCoreTest, IndexesKeepTheirRoots) {
  {
    const auto core = create();
    const IndexHandle index = open_sptree(core, "orders");
    EXPECT_TRUE(index.created());
    EXPECT_EQ(index.root(), 0u);
    core->pm().publish(index.root(), 0x1234567890);
  }
  const auto core = open();
  const IndexHandle index = open_sptree(core, "orders");
  EXPECT_FALSE(index.created());
  EXPECT_EQ(index.root(), 0x1234567890u);
  EXPECT_EQ(index.name(), "orders");
  EXPECT_EQ(&index.pool(), core.get());
}

TEST_F(PoolCoreTest, ListsItsIndexesByName) {
  const auto core = create();
  for (const char* name : {"b", "a", "c"}) core->open_index(name, "elimda", Kind::u64, Kind::bytes);
  const auto indexes = core->indexes();
  ASSERT_EQ(indexes.size(), 3u);
  EXPECT_EQ(indexes[0].name, "a");
  EXPECT_EQ(indexes[2].name, "c");
  EXPECT_EQ(indexes[1].engine, "elimda");
  EXPECT_EQ(indexes[1].key_kind, Kind::u64);
  EXPECT_EQ(indexes[1].value_kind, Kind::bytes);
}

TEST_F(PoolCoreTest, OtherEngineOrKindSaysBoth) {
  const auto core = create();
  core->open_index("orders", "sptree", Kind::u64, Kind::bytes);
  const auto as = [&](const char* engine, Kind key, Kind value) {
    return [&, engine, key, value] { core->open_index("orders", engine, key, value); };
  };
  expect_error(Errc::wrong_engine, "'sptree'", as("nbtree", Kind::u64, Kind::bytes));
  expect_error(Errc::wrong_engine, "'nbtree'", as("nbtree", Kind::u64, Kind::bytes));
  expect_error(Errc::wrong_kind, "u64 keys and bytes values", as("sptree", Kind::u64, Kind::u64));
  expect_error(Errc::wrong_kind, "u64 keys and u64 values", as("sptree", Kind::u64, Kind::u64));
  expect_error(Errc::wrong_kind, "bytes keys", as("sptree", Kind::bytes, Kind::bytes));
  core->open_index("orders", "sptree", Kind::u64, Kind::bytes);
}

TEST_F(PoolCoreTest, AnIndexIsOpenOnce) {
  const auto core = create();
  std::optional<IndexHandle> first = open_sptree(core, "orders");
  expect_error(Errc::in_use, "'orders'", [&] { open_sptree(core, "orders"); });
  expect_error(Errc::in_use, "'orders'", [&] { core->open_existing_index("orders"); });
  expect_error(Errc::in_use, "'orders'", [&] { core->begin_drop("orders"); });
  IndexHandle moved = std::move(*first);
  first.reset();
  expect_error(Errc::in_use, "'orders'", [&] { open_sptree(core, "orders"); });
  moved = open_sptree(core, "other");  // lets go of "orders"
  open_sptree(core, "orders");
}

TEST_F(PoolCoreTest, NamesHaveLimits) {
  const auto core = create();
  const std::string longest(kMaxNameSize, 'n');
  open_sptree(core, longest);
  EXPECT_EQ(core->indexes().at(0).name, longest);
  expect_error(Errc::too_large, "127", [&] { open_sptree(core, longest + "n"); });
  expect_error(Errc::invalid_argument, "name", [&] { open_sptree(core, ""); });
  expect_error(Errc::invalid_argument, "control", [&] { open_sptree(core, "a\nb"); });
  expect_error(Errc::invalid_argument, "control",
               [&] { open_sptree(core, std::string_view("a\0b", 3)); });
  open_sptree(core, "Rebhühner 🐦");
  EXPECT_EQ(core->indexes().size(), 2u);
}

TEST_F(PoolCoreTest, DirectoryFillsUpAndFreesUp) {
  const auto core = create();
  for (std::size_t i = 0; i < kDirectoryEntries; ++i) open_sptree(core, std::to_string(i));
  expect_error(Errc::out_of_space, "drop one", [&] { open_sptree(core, "one more"); });
  core->finish_drop(core->begin_drop("17"));
  open_sptree(core, "one more");
  EXPECT_EQ(core->indexes().size(), kDirectoryEntries);
}

TEST_F(PoolCoreTest, DropHidesAnIndexButKeepsItsRoot) {
  {
    const auto core = create();
    core->pm().publish(open_sptree(core, "orders").root(), 77);
    const IndexHandle hidden = core->begin_drop("orders");
    EXPECT_EQ(hidden.root(), 77u);
    EXPECT_TRUE(core->indexes().empty());
    EXPECT_TRUE(core->dropping().empty()) << "this drop is under way";
    expect_error(Errc::not_found, "'orders'", [&] { core->begin_drop("orders"); });
    EXPECT_EQ(open_sptree(core, "orders").root(), 0u) << "a new index of that name";
  }
  const auto core = open();  // the drop was interrupted
  auto dropping = core->dropping();
  ASSERT_EQ(dropping.size(), 1u);
  EXPECT_EQ(dropping[0].root(), 77u);
  EXPECT_EQ(dropping[0].name(), "orders");
  core->finish_drop(std::move(dropping[0]));
  dropping.clear();
  EXPECT_TRUE(core->dropping().empty());
  EXPECT_EQ(core->indexes().size(), 1u);
}

TEST_F(PoolCoreTest, TwoDropsOfOneNameDontMeet) {
  const auto core = create();
  core->pm().publish(open_sptree(core, "orders").root(), 1);
  IndexHandle first = core->begin_drop("orders");
  core->pm().publish(open_sptree(core, "orders").root(), 2);
  IndexHandle second = core->begin_drop("orders");
  core->finish_drop(std::move(first));
  EXPECT_EQ(second.root(), 2u);
  core->finish_drop(std::move(second));
  EXPECT_TRUE(core->dropping().empty());
}

// A handle that outlived the drop made the next index of the same entry count as open.
TEST_F(PoolCoreTest, FinishingADropTakesTheHandle) {
  const auto core = create();
  open_sptree(core, "before");
  IndexHandle dropped = core->begin_drop("before");
  core->finish_drop(std::move(dropped));
  open_sptree(core, "after");
  EXPECT_NO_THROW(core->finish_drop(core->begin_drop("after")));
  EXPECT_TRUE(core->indexes().empty());
}

TEST_F(PoolCoreTest, OpenExistingTakesAnIndexAsItIs) {
  const auto core = create();
  EXPECT_FALSE(core->open_existing_index("orders"));
  core->open_index("orders", "elimda", Kind::bytes, Kind::u64);
  EXPECT_EQ(core->open_existing_index("orders")->info().engine, "elimda");
}

TEST_F(PoolCoreTest, CloseNeedsEveryIndexClosed) {
  const auto core = create();
  std::optional<IndexHandle> index = open_sptree(core, "orders");
  expect_error(Errc::in_use, "'orders'", [&] { core->close(); });
  EXPECT_TRUE(core->is_open());
  index.reset();
  core->close();
  EXPECT_FALSE(core->is_open());
  expect_error(Errc::invalid_argument, "closed", [&] { core->close(); });
  expect_error(Errc::invalid_argument, "closed", [&] { core->info(); });
  expect_error(Errc::invalid_argument, "closed", [&] { core->indexes(); });
  expect_error(Errc::invalid_argument, "closed", [&] { open_sptree(core, "orders"); });
  open();  // the file is free although `core` still lives
}

TEST_F(PoolCoreTest, ClosesWithItsLastIndex) {
  auto core = create();
  std::optional<IndexHandle> index = open_sptree(core, "orders");
  core.reset();
  expect_error(Errc::in_use, "this process", [&] { open(); });
  index->pool().pm().publish(index->root(), 5);
  index.reset();
  EXPECT_TRUE(open()->info().was_clean);
}

TEST_F(PoolCoreTest, CloseDisposesOfRetiredObjects) {
  const auto core = create();
  int disposed = 0;
  const auto count = [](void*, void* context) { ++*static_cast<int*>(context); };
  for (int i = 0; i < 100; ++i) core->reclaimer().retire(nullptr, count, &disposed);
  core->close();
  EXPECT_EQ(disposed, 100);
}

TEST_F(PoolCoreTest, OpensAtAnotherAddress) {
  auto core = create();
  std::byte* const before = core->base();
  {
    const IndexHandle index = open_sptree(core, "orders");
    replace_root_block(index, sizeof(std::uint64_t), 99);
    const auto* block = core->at<std::uint64_t>(index.root());
    EXPECT_EQ(core->offset(block), index.root());
  }
  core->close();
  void* const blocker =
      ::mmap(before, kGrowthUnit, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_NE(blocker, MAP_FAILED);
  core = open();
  EXPECT_NE(core->base(), before);
  EXPECT_EQ(*core->at<std::uint64_t>(open_sptree(core, "orders").root()), 99u);
  ::munmap(blocker, kGrowthUnit);
}

TEST_F(PoolCoreTest, AllocatorGrowsThePool) {
  auto core = create();
  EXPECT_EQ(core->info().allocated, 0u);
  std::vector<std::unique_ptr<IndexHandle>> indexes;
  for (int i = 0; core->size() < 3 * kGrowthUnit; ++i) {
    ASSERT_LT(i, 200);
    indexes.push_back(std::make_unique<IndexHandle>(open_sptree(core, std::to_string(i))));
    replace_root_block(*indexes.back(), std::uint64_t{1} << 20, 1);
  }
  const std::uint64_t allocated = core->info().allocated;
  EXPECT_GE(allocated, indexes.size() << 20);
  EXPECT_LT(allocated, core->size());
  EXPECT_EQ(allocated_blocks(*core), roots_of(indexes));
  indexes.clear();
  core->close();
  core = open();
  EXPECT_EQ(core->info().allocated, allocated);
}

TEST_F(PoolCoreTest, AllocatorReportsWhenMaxSizeIsReached) {
  PoolOptions options = small_options();
  options.max_size = 2 * kGrowthUnit;
  const auto core = PoolCore::create(path_, options);
  const IndexHandle index = open_sptree(core, "orders");
  replace_root_block(index, 64, 7);
  expect_error(Errc::out_of_space, "max_size",
               [&] { replace_root_block(index, 3 * kGrowthUnit, 8); });
  EXPECT_EQ(*core->at<std::uint64_t>(index.root()), 7u);
  EXPECT_LE(core->size(), options.max_size);
}

/// Keeps blocks below the root of an index until the pool asks for them.
class Hoarder final : public OpenIndex {
 public:
  Hoarder(const std::shared_ptr<PoolCore>& core, std::string_view name)
      : index_(open_sptree(core, name)), entry_(core->open_indexes(), *this) {}

  void hoard(std::uint64_t bytes) { replace_root_block(index_, bytes, 1); }
  int times_asked() const { return times_asked_; }

  IndexStats stats() const override { return {}; }
  CheckReport check() const override { return {}; }
  void for_each_block(const BlockVisitor&) const override {}
  bool reclaim_space() noexcept override {
    ++times_asked_;
    if (index_.root() == pm::kNull) return false;
    PoolCore& core = index_.pool();
    alloc::Session session = core.allocator().session();
    session.free(index_.root());
    session.commit_when(index_.root(), ~std::uint64_t{0}, pm::kNull);
    session.log();
    core.pm().publish(index_.root(), pm::kNull);
    session.finish();
    return true;
  }

 private:
  IndexHandle index_;
  int times_asked_ = 0;
  OpenIndexes::Entry entry_;
};

// Most of a unit, so that a pool of one unit has no room for a second one.
constexpr std::uint64_t kHalfUnit = kGrowthUnit / 2;

TEST_F(PoolCoreTest, AFullPoolReclaimsUnneededSpaceOfItsIndexes) {
  PoolOptions options = small_options();
  options.max_size = kGrowthUnit;
  const auto core = PoolCore::create(path_, options);
  const IndexHandle index = open_sptree(core, "in need");
  const auto in_need = [&] { replace_root_block(index, kHalfUnit, 2); };
  Hoarder other(core, "other");
  {
    Hoarder hoarder(core, "hoarder");
    hoarder.hoard(kHalfUnit);
    expect_error(Errc::out_of_space, "max_size", in_need);
    EXPECT_EQ(hoarder.times_asked(), 0);
    EXPECT_TRUE(core->reclaim_space());
    EXPECT_EQ(hoarder.times_asked(), 1);
    in_need();
    EXPECT_FALSE(core->reclaim_space()) << "there was nothing more";
    EXPECT_EQ(hoarder.times_asked(), 2);
  }
  EXPECT_FALSE(core->reclaim_space());
  EXPECT_EQ(other.times_asked(), 3) << "a list of the indexes that are open";
}

TEST_F(PoolCoreTest, AReaderIsNotMadeToWaitForItself) {
  const auto core = create();
  Hoarder hoarder(core, "hoarder");
  hoarder.hoard(64);
  {
    const epoch::Guard guard;
    EXPECT_FALSE(core->reclaim_space());
    EXPECT_EQ(hoarder.times_asked(), 0);
    ASSERT_TRUE(hoarder.reclaim_space());
    EXPECT_FALSE(core->allocator().reclaim());
  }
  EXPECT_TRUE(core->allocator().reclaim());
}

TEST_F(PoolCoreTest, ContainsIsSafeForAnyOffset) {
  const auto core = create();
  EXPECT_FALSE(core->contains(0, 8));
  EXPECT_FALSE(core->contains(kPoolAreaSize - 8, 8));
  EXPECT_TRUE(core->contains(kPoolAreaSize, 8));
  EXPECT_TRUE(core->contains(kGrowthUnit - 8, 8));
  EXPECT_FALSE(core->contains(kGrowthUnit - 8, 9));
  EXPECT_FALSE(core->contains(~std::uint64_t{0}, 8));
  EXPECT_FALSE(core->contains(kPoolAreaSize, ~std::uint64_t{0}));
  EXPECT_FALSE(core->contains(~std::uint64_t{0} - 7, ~std::uint64_t{0}));
}

TEST_F(PoolCoreTest, RefusesMeaninglessOptions) {
  PoolOptions options = small_options();
  options.max_size = kGrowthUnit - 1;
  expect_error(Errc::invalid_argument, "max_size", [&] { PoolCore::create(path_, options); });
  options.max_size = kMaxPoolSize + 1;
  expect_error(Errc::invalid_argument, "max_size", [&] { PoolCore::create(path_, options); });
  options = small_options();
  options.initial_size = options.max_size + 1;
  expect_error(Errc::invalid_argument, "max_size", [&] { PoolCore::create(path_, options); });
  options.initial_size = ~std::uint64_t{0};
  expect_error(Errc::invalid_argument, "initial_size", [&] { PoolCore::create(path_, options); });
  EXPECT_FALSE(std::filesystem::exists(path_));
  options = small_options();
  options.initial_size = 2 * kGrowthUnit;
  PoolCore::create(path_, options)->close();
  options.max_size = kGrowthUnit;
  expect_error(Errc::invalid_argument, "smaller than its size",
               [&] { PoolCore::open(path_, options); });
  open();
}

TEST_F(PoolCoreTest, CreateKeepsAnExistingPool) {
  create()->close();
  expect_error(Errc::already_exists, path_.string(), [&] { create(); });
  open();
}

TEST_F(PoolCoreTest, ThreadsOpenAndCloseIndexes) {
  const auto core = create();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const IndexHandle own = open_sptree(core, "own " + std::to_string(t));
        core->pm().store(own.root(), own.root() + 1);
        try {
          const IndexHandle shared = open_sptree(core, "shared");
          core->pm().store(shared.root(), shared.root() + 1);
        } catch (const Error& error) {
          ASSERT_EQ(error.code(), Errc::in_use);
        }
        core->indexes();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t) EXPECT_EQ(open_sptree(core, "own " + std::to_string(t)).root(), 200u);
}

}  // namespace
}  // namespace perdix::detail::pool
