// After a restart the first thread that needs a write buffer's chain adopts it. The thread that
// finds no chain left tells the log that the restart is over; from then on the log counts adopted
// chains only. A thread may be suspended in the middle of an adoption. The restart must not end
// then, or the chain would be on no list and would be lost with the next reclamation.
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/cceh.h>
#include <perdix/papers/fastfair.h>
#include <perdix/papers/skiplist.h>
#include <perdix/pool.h>

#include "index/common/test_options.h"
#include "pm/probe.h"
#include "pm/test_files.h"
#include "util/test_directory.h"
#include "util/test_eventually.h"
#include "util/test_threads.h"

namespace perdix::testing {
namespace {

using Number = std::uint64_t;

/// Stops the first thread that adopts a chain, for a while: until the restart is over, which must
/// not be, or another thread that wants to end it has run for much longer than that takes.
class Sleeper final : public detail::pm::Probe {
 public:
  /// The other thread is the caller.
  Sleeper()
      : other_(detail::util::clock_of(::pthread_self())),
        before_(detail::pm::install_probe(this)) {}
  ~Sleeper() override { detail::pm::install_probe(before_); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  void on_read(const void*, std::size_t) override {}
  void on_write(const void*, std::size_t) override {}
  bool on_flush(const void*, std::size_t, const detail::pm::Site&) override { return true; }
  bool on_fence(const detail::pm::Site&) override { return true; }
  void on_step(const char* name) override {
    std::unique_lock lock(lock_);
    if (name == kIsOver) {
      over_ = true;
      changed_.notify_all();
    } else if (name == kAdopts && !asleep_) {
      asleep_ = true;
      changed_.notify_all();
      const clockid_t clock = other_;
      const auto begin = detail::util::processor_time(clock);
      lock.unlock();
      detail::util::eventually("the other thread spins, or the restart is over", [&] {
        return over() || detail::util::processor_time(clock) - begin >= kLonger;
      });
      over_while_asleep_ = over();
    }
  }

  /// Until a thread has fallen asleep, or none can any more.
  void wait_until_asleep() {
    std::unique_lock lock(lock_);
    changed_.wait(lock, [&] { return asleep_ || ended_; });
  }
  void end() {
    const std::lock_guard lock(lock_);
    ended_ = true;
    changed_.notify_all();
  }
  bool has_slept() const { return asleep_; }
  bool over() const {
    const std::lock_guard lock(lock_);
    return over_;
  }
  bool over_while_asleep() const { return over_while_asleep_; }

 private:
  static constexpr auto kLonger = std::chrono::milliseconds(2);  // of processor time

  static constexpr std::string_view kAdopts = "buffers: adopt a chain";
  static constexpr std::string_view kIsOver = "buffers: all chains are adopted";

  const clockid_t other_;
  detail::pm::Probe* const before_;
  mutable std::mutex lock_;  // guards what follows
  std::condition_variable changed_;
  bool asleep_ = false;
  bool ended_ = false;
  bool over_ = false;
  bool over_while_asleep_ = false;
};

template <class Engine>
class LateAdoption : public ::testing::Test {};

using Engines =
    ::testing::Types<Cceh<Number, Number>, FastFair<Number, Number>, SkipList<Number, Number>>;
TYPED_TEST_SUITE(LateAdoption, Engines);

TYPED_TEST(LateAdoption, KeepsTheRestartFromBeingOver) {
  using Index = TypeParam;
  constexpr Number kPairs = 40;
  PoolOptions pool_options;
  pool_options.durability = Durability::process;
  pool_options.max_size = std::uint64_t{64} << 20;
  const detail::index::BufferOptions options{.dram_budget = kUnlimited,
                                             .technique = Technique::b,
                                             .resume_in_background = false,
                                             .segment_bytes = 576};
  const testing_files::TempDirectory folder{testing_files::memory_directory()};
  const auto path = folder.path() / "pool";
  const pid_t writer = testing_files::start_child([&] {
    const Pool pool = Pool::create(path, pool_options);
    Index index(pool, "t", options);
    for (Number key = 0; key < kPairs; ++key) index.put(key, key + 1);
    ::_exit(0);  // closes nothing
    return true;
  });
  ASSERT_EQ(testing_files::await_child(writer), 0);
  const Pool pool = Pool::open(path, pool_options);
  Index index(pool, "t", options);
  Sleeper sleeper;
  std::thread adopts([&] {
    for (Number key = 0; key < kPairs; ++key)
      EXPECT_EQ(index.get(key), std::optional<Number>(key + 1)) << key;
    sleeper.end();
  });
  sleeper.wait_until_asleep();
  EXPECT_EQ(index.check().problems, std::vector<std::string>());  // sees to all chains
  adopts.join();
  EXPECT_TRUE(sleeper.has_slept());
  EXPECT_TRUE(sleeper.over());
  EXPECT_FALSE(sleeper.over_while_asleep());
}

}  // namespace
}  // namespace perdix::testing
