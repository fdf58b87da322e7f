// What a program does to the descriptor of its pool's file: closes it, or lets it become another
// file's.
#include <iostream>
#include <string>

#include "pool/run_call.h"
#include "pool/test_pool.h"

namespace perdix::detail::pool {
namespace {

using testing_files::await_child;
using testing_files::content_of;
using testing_files::expect_error;
using testing_files::ReplacedDescriptor;
using testing_files::start_child;
using testing_files::TempDirectory;
using testing_files::true_in_child;

class ClosedFile : public ::testing::TestWithParam<Durability> {
 protected:
  PoolOptions options() const {
    PoolOptions options = small_options();
    options.durability = GetParam();
    return options;
  }

  int descriptor() const { return testing_files::descriptor_of(path_); }

  void expect_other_untouched() const {
    EXPECT_EQ(content_of(other_), ReplacedDescriptor::kContent);
  }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("a.pool");
  std::filesystem::path other_ = directory_.file("app.log");
};

TEST_P(ClosedFile, IsNeverStandardOutput) {
  const pid_t child = start_child([&] {
    for (int number : {0, 1, 2}) ::close(number);
    const auto core = PoolCore::create(path_, options());
    core->extend(2 * kGrowthUnit);
    core->pm().publish(core->open_index("i", "elimda", Kind::u64, Kind::u64).root(), 4711);
    for (int i = 0; i < 1000; ++i) {
      std::cout << "request " << i << " answered" << std::endl;
      std::cerr << "request " << i << " answered" << std::endl;
    }
    ::kill(::getpid(), SIGKILL);
    return true;
  });
  await_child(child);
  EXPECT_EQ(PoolCore::open(path_, options())->open_existing_index("i")->root(), 4711u);
}

TEST_P(ClosedFile, GrowsIntoNoOther) {
  auto core = PoolCore::create(path_, options());
  const IndexHandle index = core->open_index("i", "elimda", Kind::u64, Kind::u64);
  const ReplacedDescriptor replaced(descriptor(), other_);
  core->pm().publish(index.root(), 4711);  // the mapping needs no descriptor
  expect_error(Errc::io_error, "a.pool", [&] { core->extend(3 * kGrowthUnit); });
  expect_other_untouched();
  EXPECT_EQ(core->size(), kGrowthUnit);
}

TEST_P(ClosedFile, IsOnlyReadOnceThatWasNoticed) {
  auto core = PoolCore::create(path_, options());
  core->open_index("i", "elimda", Kind::u64, Kind::u64);
  {
    const ReplacedDescriptor replaced(descriptor(), other_);
    expect_error(Errc::io_error, "a.pool", [&] { core->extend(2 * kGrowthUnit); });
  }
  core->require_usable();
  EXPECT_EQ(core->indexes().size(), 1u);
  EXPECT_EQ(core->info().size, kGrowthUnit);
  expect_error(Errc::io_error, "only be read", [&] { core->require_writable(); });
  expect_error(Errc::io_error, "only be read", [&] { core->extend(2 * kGrowthUnit); });
  expect_error(Errc::io_error, "only be read",
               [&] { core->open_index("j", "elimda", Kind::u64, Kind::u64); });
  expect_error(Errc::io_error, "only be read", [&] { core->begin_drop("i"); });
}

/// An engine, as far as run_call() needs one.
struct EngineOf {
  const PoolCore& pool() const { return core; }
  PoolCore& core;
};

TEST_P(ClosedFile, DoesNotRefuseAChangeThatIsMade) {
  auto core = PoolCore::create(path_, options());
  EngineOf engine{*core};
  const ReplacedDescriptor replaced(descriptor(), other_);
  const auto change = [&](EngineOf& changed) {
    // Another thread notices.
    expect_error(Errc::io_error, "a.pool", [&] { changed.core.extend(2 * kGrowthUnit); });
    return 4711;
  };
  EXPECT_EQ(run_call(core->health(), engine, change), 4711);
  expect_error(Errc::io_error, "only be read", [&] { run_call(core->health(), engine, change); });
}

TEST_P(ClosedFile, KeepsStoresForTheNextOpening) {
  auto core = PoolCore::create(path_, options());
  {
    const IndexHandle index = core->open_index("i", "elimda", Kind::u64, Kind::u64);
    const ReplacedDescriptor replaced(descriptor(), other_);
    core->pm().publish(index.root(), 4711);
    expect_error(Errc::io_error, "a.pool", [&] { core->extend(2 * kGrowthUnit); });
  }
  expect_error(Errc::io_error, "a.pool", [&] { core->close(); });
  core = PoolCore::open(path_, options());
  EXPECT_FALSE(core->info().was_clean);
  EXPECT_EQ(core->open_existing_index("i")->root(), 4711u);
  core->extend(2 * kGrowthUnit);
}

TEST_P(ClosedFile, ClosingThePoolTouchesNoOther) {
  auto core = PoolCore::create(path_, options());
  const ReplacedDescriptor replaced(descriptor(), other_);
  expect_error(Errc::io_error, "a.pool", [&] { core->close(); });
  EXPECT_GE(::fcntl(replaced.number(), F_GETFD), 0);
  expect_other_untouched();
  PoolCore::open(path_, options())->close();  // its lock has ended with its mapping
}

TEST_P(ClosedFile, DestroyingThePoolTouchesNoOther) {
  auto core = PoolCore::create(path_, options());
  const ReplacedDescriptor replaced(descriptor(), other_);
  core.reset();
  EXPECT_GE(::fcntl(replaced.number(), F_GETFD), 0);
  expect_other_untouched();
  EXPECT_FALSE(PoolCore::open(path_, options())->info().was_clean);
}

TEST_P(ClosedFile, IsAnotherOneToAChildToo) {
  auto core = PoolCore::create(path_, options());
  const ReplacedDescriptor replaced(descriptor(), other_);
  EXPECT_TRUE(true_in_child([&] { return ::fcntl(replaced.number(), F_GETFD) >= 0; }));
}

TEST_P(ClosedFile, MayBeOpenUnderTheSameNumberAgain) {
  auto core = PoolCore::create(path_, options());
  const int number = descriptor();
  const int copy = ::dup(number);
  ::close(number);
  EXPECT_EQ(::dup2(copy, number), number);
  ::close(copy);
  core->extend(2 * kGrowthUnit);
  core->close();
}

INSTANTIATE_TEST_SUITE_P(Durabilities, ClosedFile,
                         ::testing::Values(Durability::process, Durability::power),
                         [](const auto& tried) {
                           return tried.param == Durability::process ? "process" : "power";
                         });

}  // namespace
}  // namespace perdix::detail::pool
