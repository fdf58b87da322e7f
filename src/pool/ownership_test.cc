// Who may have a pool open, and what a process that dies leaves behind.
#include <sys/file.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <thread>

#include "pool/file_lock.h"
#include "pool/layout.h"
#include "pool/test_pool.h"
#include "util/random.h"

namespace perdix::detail::pool {
namespace {

using testing_files::await_child;
using testing_files::expect_error;
using testing_files::start_child;
using testing_files::TempDirectory;
using testing_files::true_in_child;

/// A pipe by which a child tells that it has got somewhere.
class Signal {
 public:
  Signal() {
    if (::pipe(ends_) != 0) throw std::runtime_error("no pipe");
  }
  ~Signal() {
    for (int end : ends_) ::close(end);
  }
  void send() const {
    const char byte = 1;
    (void)!::write(ends_[1], &byte, 1);
  }
  bool wait() const {
    char byte = 0;
    return ::read(ends_[0], &byte, 1) == 1;
  }

 private:
  int ends_[2];
};

class Ownership : public ::testing::Test {
 protected:
  /// A child that has the pool open until it is killed. `setup` runs in it first.
  template <class Setup>
  pid_t child_with_pool(Setup setup) {
    const Signal ready;
    const pid_t child = start_child([&] {
      const auto core = PoolCore::open(path_, small_options());
      setup(*core);
      ready.send();
      while (true) ::pause();
      return true;
    });
    EXPECT_TRUE(ready.wait());
    return child;
  }
  static void kill(pid_t child) {
    ::kill(child, SIGKILL);
    await_child(child);
  }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
};

TEST_F(Ownership, SecondOpenerIsToldTheOwnersPid) {
  make_pool(path_);
  const pid_t child = child_with_pool([](PoolCore&) {});
  const std::string owner = "process " + std::to_string(child);
  expect_error(Errc::in_use, owner, [&] { PoolCore::open(path_, small_options()); });
  expect_error(Errc::in_use, owner,
               [&] { PoolCore::open(path_, small_options(), Purpose::verification); });
  expect_error(Errc::already_exists, path_.string(),
               [&] { PoolCore::create(path_, small_options()); });
  kill(child);
  EXPECT_FALSE(PoolCore::open(path_, small_options())->info().was_clean);
}

TEST_F(Ownership, AlsoHoldsWithinAProcess) {
  const auto core = PoolCore::create(path_, small_options());
  expect_error(Errc::in_use, "this process", [&] { PoolCore::open(path_, small_options()); });
  // The refused opening has closed its descriptor; that must not have freed the lock.
  expect_error(Errc::in_use, "this process", [&] { PoolCore::open(path_, small_options()); });
  const std::string pid = "process " + std::to_string(::getpid());
  EXPECT_TRUE(true_in_child([&] {
    expect_error(Errc::in_use, pid, [&] { PoolCore::open(path_, small_options()); });
    return !HasFailure();
  }));
}

TEST_F(Ownership, ForkedChildDoesntKeepAClosedPool) {
  const auto core = PoolCore::create(path_, small_options());
  const Signal go;
  const pid_t child = start_child([&] { return go.wait(); });  // shares the descriptor
  core->close();
  PoolCore::open(path_, small_options())->close();
  go.send();
  await_child(child);
}

TEST_F(Ownership, SurvivorFindsWhatTheKilledProcessStored) {
  make_pool(path_);
  const pid_t child = child_with_pool([](PoolCore& core) {
    core.extend(2 * kGrowthUnit);
    core.pm().publish(core.open_existing_index("first")->root(), 4711);
    core.open_index("third", "elimda", Kind::u64, Kind::u64);
    core.begin_drop("second");
  });
  kill(child);
  const auto core = PoolCore::open(path_, small_options());
  EXPECT_EQ(core->size(), 2 * kGrowthUnit);
  EXPECT_EQ(core->open_existing_index("first")->root(), 4711u);
  EXPECT_EQ(core->indexes().size(), 2u);
  ASSERT_EQ(core->dropping().size(), 1u);
  EXPECT_EQ(core->dropping()[0].name(), "second");
}

/// Takes the lock of a file and frees it.
void take_lock(const pm::File& file, const std::function<void()>& pause) {
  std::optional<FileLock> lock;
  const pm::NoFork no_fork;
  lock.emplace(file, no_fork, pause);
}

/// A file with the lock and the descriptor in a child of a killed process, as a kill between a fork
/// and the handler that closes the descriptor there leaves it.
class LeftToAChild : public Ownership {
 protected:
  LeftToAChild() {
    owner_ = start_child([&] {
      const pm::File file = pm::File::create_in_place(path_);
      const OwnerBlock owner{static_cast<std::uint64_t>(::getpid())};
      (void)!::pwrite(file.fd(), &owner, sizeof owner, kOwnerOffset);
      std::optional<FileLock> lock;
      {
        const pm::NoFork no_fork;
        lock.emplace(file, no_fork);
      }
      if (::_Fork() == 0) {  // which calls no handlers
        go_.wait();
        ::close(file.fd());
        closed_.send();
        ::_exit(0);
      }
      ready_.send();
      while (true) ::pause();
      return true;
    });
    EXPECT_TRUE(ready_.wait());
    kill(owner_);
  }
  ~LeftToAChild() override { go_.send(); }

  Signal ready_, go_, closed_;
  pid_t owner_;
};

TEST_F(LeftToAChild, IsWaitedFor) {
  const pm::File file = pm::File::open(path_);
  int pauses = 0;
  take_lock(file, [&] {
    ++pauses;
    go_.send();
    EXPECT_TRUE(closed_.wait());
  });
  EXPECT_EQ(pauses, 1);
}

TEST_F(LeftToAChild, IsNotWaitedForForEver) {
  const pm::File file = pm::File::open(path_);
  int pauses = 0;
  expect_error(Errc::in_use, "a child of process " + std::to_string(owner_),
               [&] { take_lock(file, [&] { ++pauses; }); });
  EXPECT_EQ(pauses, FileLock::kMaxPauses);
}

TEST_F(Ownership, AnOwnerThatRunsIsNotWaitedFor) {
  const auto core = PoolCore::create(path_, small_options());
  const pm::File file = pm::File::open(path_);
  expect_error(Errc::in_use, "this process",
               [&] { take_lock(file, [] { ADD_FAILURE() << "waits"; }); });
}

// Its pid is that of another process here, or of this one: two containers have a process 1 each.
TEST_F(Ownership, AnOwnerInAnotherContainerIsCalledThat) {
  if (pid_namespace() == 0) GTEST_SKIP() << "the system does not tell the namespace";
  const auto core = PoolCore::create(path_, small_options());
  const auto owner = read_struct<OwnerBlock>(path_, kOwnerOffset);
  EXPECT_EQ(owner.pid_namespace, pid_namespace());
  const OwnerBlock elsewhere{owner.pid, owner.pid_namespace ^ 1};
  write_bytes(path_, kOwnerOffset, &elsewhere, sizeof elsewhere);
  const pm::File file = pm::File::open(path_);
  expect_error(Errc::in_use, "process " + std::to_string(::getpid()) + " of another container",
               [&] { take_lock(file, [] {}); });
}

void sleep_randomly(util::Random& random, std::chrono::microseconds most) {
  const auto bound = static_cast<std::uint64_t>(most.count());
  std::this_thread::sleep_for(std::chrono::microseconds(random.below(bound)));
}

/// How long a call takes here, so that kills come at all of its moments.
template <class Call>
std::chrono::microseconds duration_of(Call call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                               start);
}

std::uint64_t new_seed() {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << std::endl;
  return seed;
}

// A process that is killed while it creates a pool leaves a whole pool or, where files can be
// nameless until they are whole, nothing.
TEST_F(Ownership, KilledCreatorLeavesNoHalfPool) {
  util::Random random(new_seed());
  const auto once = duration_of([&] { PoolCore::create(path_, small_options()); });
  int whole = 0;
  for (int round = 0; round < 40; ++round) {
    std::filesystem::remove(path_);
    const pid_t child = start_child([&] {
      PoolCore::create(path_, small_options());
      while (true) ::pause();
      return true;
    });
    sleep_randomly(random, 2 * once);
    kill(child);
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
      EXPECT_EQ(entry.path(), path_) << "left behind";
    if (!std::filesystem::exists(path_)) continue;
    PoolCore::open(path_, small_options())->close();
    ++whole;
  }
  std::cout << whole << " of 40 kills left a pool, the others nothing" << std::endl;
}

TEST_F(Ownership, KilledCreatorInPlaceLeavesWhatIsRefused) {
  util::Random random(new_seed());
  const auto once = duration_of([&] { PoolCore::create(path_, small_options()); });
  int whole = 0, refused = 0;
  for (int round = 0; round < 40; ++round) {
    std::filesystem::remove(path_);
    const pid_t child = start_child([&] {
      PoolCore::create(pm::File::create_in_place(path_), small_options());
      while (true) ::pause();
      return true;
    });
    sleep_randomly(random, 2 * once);
    kill(child);
    if (!std::filesystem::exists(path_)) continue;
    try {
      PoolCore::open(path_, small_options())->close();
      ++whole;
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.code(), Errc::not_a_pool) << error.what();
      EXPECT_NE(std::string(error.what()).find("interrupted"), std::string::npos) << error.what();
    }
  }
  std::cout << "after 40 kills: " << whole << " pools, " << refused << " refused" << std::endl;
}

/// What an engine does to an index that is dropped, and the pool after it.
void finish(IndexHandle dropped) {
  PoolCore& core = dropped.pool();
  if (dropped.root() != pm::kNull) {
    alloc::Session session = core.allocator().session();
    session.free(dropped.root());
    session.commit_when(dropped.root(), ~std::uint64_t{0}, pm::kNull);
    session.log();
    core.pm().publish(dropped.root(), pm::kNull);
    session.finish();
  }
  core.finish_drop(std::move(dropped));
}

/// Opens, grows, adds and drops indexes and closes, until killed.
void use_pool(const std::filesystem::path& path) {
  for (std::uint64_t i = 0;; ++i) {
    const auto core = PoolCore::open(path, small_options());
    for (IndexHandle& dropped : core->dropping()) finish(std::move(dropped));
    const std::string name = "index " + std::to_string(i % 5);
    {
      const IndexHandle index = core->open_index(name, "sptree", Kind::u64, Kind::u64);
      for (std::uint64_t n = 0; n < 20; ++n) replace_root_block(index, 1 + (i + n) * 997, n);
    }
    if (i % 7 == 0) core->extend(std::min(core->size() + kGrowthUnit, core->max_size()));
    if (i % 3 == 0) finish(core->begin_drop(name));
  }
}

// Killed at any moment of that, also while it repairs what the one before it left.
TEST_F(Ownership, KilledUserLeavesASoundPool) {
  make_pool(path_);
  util::Random random(new_seed());
  std::uint64_t unclean = 0;
  for (int round = 0; round < 100; ++round) {
    const pid_t child = start_child([&] {
      use_pool(path_);
      return true;
    });
    sleep_randomly(random, std::chrono::milliseconds(20));
    kill(child);
    const auto core = PoolCore::open(path_, small_options());
    unclean += core->info().was_clean ? 0 : 1;
    EXPECT_EQ(std::filesystem::file_size(path_), core->size());
    CheckReport report;
    core->allocator().check(report);
    EXPECT_TRUE(report.ok()) << report.problems.front();
    std::vector<std::unique_ptr<IndexHandle>> handles;
    for (const IndexInfo& info : core->indexes())
      handles.push_back(
          std::make_unique<IndexHandle>(std::move(*core->open_existing_index(info.name))));
    EXPECT_GE(handles.size(), 2u);
    EXPECT_LE(handles.size(), 7u);
    for (IndexHandle& dropped : core->dropping())
      handles.push_back(std::make_unique<IndexHandle>(std::move(dropped)));
    EXPECT_LE(handles.size(), 8u);
    ASSERT_EQ(allocated_blocks(*core), roots_of(handles)) << "round " << round;
  }
  std::cout << unclean << " of 100 kills found the pool open" << std::endl;
}

}  // namespace
}  // namespace perdix::detail::pool
