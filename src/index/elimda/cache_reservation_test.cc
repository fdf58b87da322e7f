// On a directory in place of resctrl: the tests read what was written, and play the kernel, which
// removes a group's files with its directory.
#include "index/elimda/cache_reservation.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "index/elimda/cache_schemata.h"
#include "util/test_directory.h"
#include "util/test_eventually.h"

namespace perdix::detail::index::elimda {
namespace {

namespace fs = std::filesystem;

class CacheReservationTest : public ::testing::Test {
 protected:
  CacheReservationTest() { write("schemata", "    MB:0=100;1=100\n    L3:0=ffff;1=fff\n"); }

  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  /// The last line: a file of resctrl has what was written last.
  std::string last(const fs::path& file) const {
    std::ifstream in(root_ / file);
    std::string last;
    for (std::string line; std::getline(in, line);) last = line;
    return last;
  }
  std::set<std::string> lines(const fs::path& file) const {
    std::ifstream in(root_ / file);
    std::set<std::string> all;
    for (std::string line; std::getline(in, line);) all.insert(line);
    return all;
  }
  fs::path group() const { return "perdix-" + std::to_string(::getpid()); }
  void remove_files_of(const fs::path& group) {
    for (const char* file : {"schemata", "mode", "tasks"}) fs::remove(root_ / group / file);
  }

  testing_files::TempDirectory directory_;
  fs::path root_ = directory_.path();
};

TEST_F(CacheReservationTest, TheGroupHasTheHighestWaysAlone) {
  const auto reservation = CacheReservation::make(3, root_);
  ASSERT_NE(reservation, nullptr);
  EXPECT_EQ(last("schemata"), "L3:0=1fff;1=1ff");
  EXPECT_EQ(last(group() / "schemata"), "L3:0=e000;1=e00");
  EXPECT_EQ(last(group() / "mode"), "exclusive");
}

TEST_F(CacheReservationTest, AllThreadsAreInIt) {
  std::atomic<pid_t> id{0};
  std::jthread other([&](const std::stop_token& stop) {
    id = ::gettid();
    id.notify_one();
    util::eventually("the test ends", [&] { return stop.stop_requested(); });
  });
  id.wait(0);
  const auto reservation = CacheReservation::make(1, root_);
  const auto tasks = lines(group() / "tasks");
  EXPECT_TRUE(tasks.contains(std::to_string(id.load())));
  EXPECT_TRUE(tasks.contains(std::to_string(::getpid())));
}

TEST_F(CacheReservationTest, ReturnsTheWaysAtItsEnd) {
  auto reservation = CacheReservation::make(3, root_);
  write("schemata", last("schemata") + "\n");
  remove_files_of(group());
  reservation.reset();
  EXPECT_EQ(last("schemata"), "L3:0=ffff;1=fff");
  EXPECT_FALSE(fs::exists(root_ / group()));
}

TEST_F(CacheReservationTest, AProcessHasOne) {
  const auto first = CacheReservation::make(1, root_);
  ASSERT_NE(first, nullptr);
  write("schemata", last("schemata") + "\n");
  EXPECT_EQ(CacheReservation::make(1, root_), nullptr);
  EXPECT_EQ(last("schemata"), "L3:0=7fff;1=7ff") << "the second changed something";
}

TEST_F(CacheReservationTest, RemovesTheGroupOfAKilledProcess) {
  // No process has this number, now or later: Linux gives none above 2^22.
  const fs::path left = "perdix-" + std::to_string((1 << 22) + 1);
  write("schemata", "L3:0=3fff;1=3ff\n");
  write(left / "schemata", "L3:0=c000;1=c00\n");
  // The kernel would remove the directory with its file. Here it stays, and so do its ways.
  ASSERT_NE(CacheReservation::make(1, root_), nullptr);
  EXPECT_EQ(last(left / "schemata"), "L3:0=c000;1=c00");
  fs::remove_all(root_ / group());
  fs::remove(root_ / left / "schemata");
  write("schemata", "L3:0=3fff;1=3ff\n");
  ASSERT_NE(CacheReservation::make(1, root_), nullptr);
  EXPECT_FALSE(fs::exists(root_ / left));
}

TEST_F(CacheReservationTest, WithoutCatNothingHappens) {
  EXPECT_EQ(CacheReservation::make(1, root_ / "nothing"), nullptr);
  EXPECT_EQ(CacheReservation::make(0, root_), nullptr);
  EXPECT_EQ(CacheReservation::make(12, root_), nullptr) << "the default group would have no way";
  write("schemata", "MB:0=100\n");
  EXPECT_EQ(CacheReservation::make(1, root_), nullptr);
  write("schemata", "L3:0=zz\n");
  EXPECT_EQ(CacheReservation::make(1, root_), nullptr);
  EXPECT_FALSE(fs::exists(root_ / group()));
}

TEST(CacheSchemata, WaysAreTakenFromTheTopOfEachCache) {
  const auto all = CacheSchemata::parse("L3:0=f0;1=ff");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->highest(2)->text(), "L3:0=c0;1=c0\n");
  EXPECT_FALSE(all->highest(4)) << "a cache must keep one";
  EXPECT_EQ(all->without(*all->highest(2)).with(*all->highest(2)), *all);
}

}  // namespace
}  // namespace perdix::detail::index::elimda
