// Pages that the device does not give: the pool fails, and nothing else does.
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include <perdix/bus_errors.h>

#include "pm/test_lost_page.h"
#include "pool/test_pool.h"

namespace perdix::detail::pool {
namespace {

using testing_files::expect_error;
using testing_files::lose_page;
using testing_files::TempDirectory;

constexpr std::uint64_t kPage = 4096;
constexpr pm::Offset kPlace = 2 * kPoolAreaSize;

std::uint64_t load(const std::uint64_t* word) {
  return *static_cast<const volatile std::uint64_t*>(word);
}

class LostPagesTest : public ::testing::Test {
 protected:
  void SetUp() override { handle_bus_errors(); }

  std::uint64_t* word(PoolCore& core, pm::Offset offset) { return core.at<std::uint64_t>(offset); }

  static void expect_failed(PoolCore& core) {
    expect_error(Errc::io_error, "SIGBUS", [&] { core.require_usable(); });
  }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
};

TEST_F(LostPagesTest, PoolFailsAndKeepsItsFile) {
  const auto core = PoolCore::create(path_, small_options());
  core->pm().store(*word(*core, kPlace), 1);
  core->pm().store(*word(*core, kPlace + kPage), 2);
  lose_page(word(*core, kPlace));
  core->require_usable();  // until it is needed
  EXPECT_EQ(load(word(*core, kPlace)), 0u);
  expect_failed(*core);
  EXPECT_EQ(load(word(*core, kPlace + kPage)), 2u);
  core->pm().store(*word(*core, kPlace), 3);
  core->pm().store(*word(*core, kPlace + kPage), 4);
  EXPECT_EQ(load(word(*core, kPlace)), 3u);
  const auto refuses = [](auto call) { expect_error(Errc::io_error, "device", call); };
  refuses([&] { core->extend(2 * kGrowthUnit); });
  refuses([&] { core->open_index("a", "sptree", Kind::u64, Kind::u64); });
  refuses([&] { core->close(); });
  const auto again = PoolCore::open(path_, small_options());
  EXPECT_FALSE(again->info().was_clean);
  EXPECT_EQ(load(word(*again, kPlace)), 1u);
  EXPECT_EQ(load(word(*again, kPlace + kPage)), 2u);
}

TEST_F(LostPagesTest, StoreToALostPageFailsThePool) {
  const auto core = PoolCore::create(path_, small_options());
  lose_page(word(*core, kPlace));
  core->pm().store(*word(*core, kPlace), 1);
  expect_failed(*core);
}

TEST_F(LostPagesTest, ManyThreadsMeetLostPages) {
  constexpr std::size_t kThreads = 4, kPages = 64;
  const auto core = PoolCore::create(path_, small_options());
  for (std::size_t i = 0; i < kPages; ++i) lose_page(word(*core, kPlace + i * kPage));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < kPages; ++i) {
        const std::size_t page = (t % 2 == 0) ? i : kPages - 1 - i;
        if (load(word(*core, kPlace + page * kPage)) != 0) ++wrong;
        if (core->health().usable()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(LostPagesTest, OtherPoolsGoOn) {
  const auto other = PoolCore::create(directory_.file("other.pool"), small_options());
  {
    const auto core = PoolCore::create(path_, small_options());
    const auto third = PoolCore::create(directory_.file("third.pool"), small_options());
    lose_page(word(*core, kPlace));
    EXPECT_EQ(load(word(*core, kPlace)), 0u);
    expect_failed(*core);
    third->close();
  }
  other->require_usable();
  lose_page(word(*other, kPlace));
  EXPECT_EQ(load(word(*other, kPlace)), 0u);
  expect_failed(*other);
}

// What happens if another program cuts the file: a page is lost where nothing was injected.
TEST_F(LostPagesTest, FileThatWasCut) {
  const auto core = PoolCore::create(path_, small_options());
  core->pm().store(*word(*core, kPlace), 1);
  std::filesystem::resize_file(path_, kPlace + kPage);
  EXPECT_EQ(load(word(*core, kPlace)), 1u);
  core->require_usable();
  for (pm::Offset offset = kPlace + kPage; offset < core->size(); offset += kPage)
    ASSERT_EQ(load(word(*core, offset)), 0u);
  expect_failed(*core);
  EXPECT_EQ(load(word(*core, kPlace)), 1u);
  expect_error(Errc::io_error, "device", [&] { core->close(); });
  expect_error(Errc::truncated, "", [&] { PoolCore::open(path_, small_options()); });
}

/// A process that does `work` and then touches a lost page of no pool ends in this way.
template <class Work>
int end_of_process(Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGBUS, SIG_DFL);
    work();
    void* const page = ::mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    lose_page(page);
    (void)load(static_cast<const std::uint64_t*>(page));
    ::_exit(1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST_F(LostPagesTest, OtherAddressesEndTheProcess) {
  const int status = end_of_process([] { handle_bus_errors(); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) << status;
}

TEST_F(LostPagesTest, OtherAddressesGoToTheHandlerBefore) {
  const int plain = end_of_process([] {
    std::signal(SIGBUS, [](int) { ::_exit(7); });
    handle_bus_errors();
    handle_bus_errors();  // does not put it before itself
  });
  EXPECT_TRUE(WIFEXITED(plain) && WEXITSTATUS(plain) == 7) << plain;
  const int detailed = end_of_process([] {
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      ::_exit(info->si_code == BUS_ADRERR ? 8 : 9);
    };
    ::sigaction(SIGBUS, &action, nullptr);
    handle_bus_errors();
  });
  EXPECT_TRUE(WIFEXITED(detailed) && WEXITSTATUS(detailed) == 8) << detailed;
}

TEST_F(LostPagesTest, SignalThatAProcessSendsIsNoFault) {
  const int status = end_of_process([] {
    handle_bus_errors();
    ::raise(SIGBUS);
    ::_exit(1);
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) << status;
}

TEST_F(LostPagesTest, ChildHasPoolsToo) {
  const auto core = PoolCore::create(path_, small_options());
  EXPECT_TRUE(testing_files::true_in_child([&] {
    const auto other = PoolCore::create(directory_.file("other.pool"), small_options());
    lose_page(word(*other, kPlace));
    EXPECT_EQ(load(word(*other, kPlace)), 0u);
    expect_failed(*other);
    return !HasFailure();
  }));
  core->require_usable();
}

// A child has the list of pools, but what lies at their addresses is its own.
TEST_F(LostPagesTest, ChildTakesNoPageForThatOfAPool) {
  const auto core = PoolCore::create(path_, small_options());
  void* const address = word(*core, kPlace);
  const int status = end_of_process([&] {
    handle_bus_errors();
    void* const page =
        ::mmap(address, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page != address) ::_exit(2);
    lose_page(page);
    (void)load(static_cast<const std::uint64_t*>(page));
    ::_exit(3);
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) << status;
  core->require_usable();
}

}  // namespace
}  // namespace perdix::detail::pool
