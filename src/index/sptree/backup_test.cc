// The backup of the top layer, while entries wait on their way there: a probe keeps the pool's
// thread from filing them, so this is only in the instrumented build.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <perdix/pool.h>

#include "index/sptree/test_backup.h"
#include "index/sptree/test_tree.h"
#include "pm/probe.h"
#include "util/random.h"
#include "util/test_directory.h"
#include "util/test_eventually.h"
#include "util/test_threads.h"

namespace perdix::detail::index::sptree {
namespace {

using namespace std::chrono_literals;

/// Keeps the background at rest; calls a function once before a read of persistent memory.
class Rest final : public pm::Probe {
 public:
  Rest() : previous_(pm::install_probe(this)) {}
  Rest(const Rest&) = delete;
  Rest& operator=(const Rest&) = delete;
  ~Rest() override { pm::install_probe(previous_); }

  void before_next_read(std::function<void()> call) {
    call_ = std::move(call);
    armed_ = true;
  }

  void on_read(const void*, std::size_t) override {
    if (armed_.exchange(false)) call_();
  }
  void on_write(const void*, std::size_t) override {}
  bool on_flush(const void*, std::size_t, const pm::Site&) override { return true; }
  bool on_fence(const pm::Site&) override { return true; }

 private:
  pm::Probe* previous_;
  std::function<void()> call_;
  std::atomic<bool> armed_{false};  // reads come from several threads
};

template <class K>
class BackupTest : public testing::Test {
 protected:
  using TestTree = Tree<K, std::uint64_t>;

  BackupTest() { open(); }

  void open() { tree_.emplace(pool_.core()->open_index("t", kEngineName, kKindOf<K>, Kind::u64)); }
  void reopen() {
    tree_.reset();
    open();
  }

  static K key(std::uint64_t number) {
    if constexpr (std::is_same_v<K, std::string>)
      return std::to_string((1u << 20) + number);
    else
      return number;
  }
  void put(std::uint64_t number) { tree_->put(key(number), number); }
  void back_up() { pool_.core()->background().drain(); }

  /// What was freed can be allocated again.
  void settle() {
    pool_.core()->reclaimer().drain();
    pool_.core()->allocator().reclaim();
  }

  /// Of those that the backup should have: low bound and offset.
  std::pair<K, pm::Offset> last_to_back_up() { return *backup().leaves_it_should_have().rbegin(); }

  /// Ascending pairs, until the last one is alone in a leaf that is to be backed up, and waits for
  /// it as the only one. Its number.
  std::uint64_t put_until_one_waits(std::uint64_t step) {
    std::uint64_t last = 0;
    const auto ends_with_a_leaf_to_back_up = [&] {
      const auto leaves = backup().leaves_it_should_have();
      return !leaves.empty() && key(last - step) < leaves.rbegin()->first;
    };
    for (put(last); !ends_with_a_leaf_to_back_up(); put(last)) {
      back_up();
      last += step;
    }
    return last;
  }

  BackupOf<K> backup() { return {*pool_.core(), tree_->handle().root()}; }
  bool complete() { return backup().leaves() == backup().leaves_it_should_have(); }

  void expect_sound() {
    for (const std::string& problem : tree_->check().problems) ADD_FAILURE() << problem;
  }

  TestTree& tree() { return *tree_; }
  Rest& rest() { return rest_; }

 private:
  testing_files::TempDirectory folder_{testing_files::memory_directory()};
  Rest rest_;
  Pool pool_ = Pool::create(folder_.file("pool"));
  std::optional<TestTree> tree_;
};

using Kinds = testing::Types<std::uint64_t, std::string>;
TYPED_TEST_SUITE(BackupTest, Kinds);

constexpr std::uint64_t kKeys = 60 * kLeafPairs;

TYPED_TEST(BackupTest, ASplitLeavesTheBackupToTheBackground) {
  for (std::uint64_t i = 0; i < kKeys; ++i) this->put(i);
  EXPECT_FALSE(this->backup().leaves_it_should_have().empty());
  EXPECT_TRUE(this->backup().leaves().empty());
  this->back_up();
  EXPECT_TRUE(this->complete());
  this->expect_sound();
}

TYPED_TEST(BackupTest, DoesNotBackUpMergedLeaves) {
  for (std::uint64_t i = 0; i < kKeys; ++i) this->put(i);
  for (std::uint64_t i = kKeys; i-- > 1;) this->tree().erase(this->key(i));
  ASSERT_TRUE(this->backup().leaves_it_should_have().empty());
  this->back_up();
  EXPECT_TRUE(this->backup().leaves().empty());
  this->expect_sound();
}

/// The block of a leaf that was merged away is a leaf again, whose range covers the bound that
/// waits and begins below it.
TYPED_TEST(BackupTest, AnEntryOfAnEarlierLeafOfTheSameBlockIsNotBackedUp) {
  const std::uint64_t last = this->put_until_one_waits(10);
  const auto before = this->last_to_back_up();
  this->tree().erase(this->key(last));
  auto after = before;
  for (int tries = 0; tries < 1000; ++tries) {  // until its block is allocated again
    this->settle();
    this->put(last - 9);
    after = this->last_to_back_up();
    if (after.second == before.second) break;
    this->tree().erase(this->key(last - 9));
  }
  ASSERT_EQ(after.second, before.second);
  ASSERT_LT(after.first, before.first);
  this->back_up();
  EXPECT_TRUE(this->complete());
  this->expect_sound();
}

TYPED_TEST(BackupTest, BacksUpTheLeavesAfterManySplitsAndMerges) {
  util::Random random(1);
  constexpr int kRounds = 20;
  for (int round = 1; round <= kRounds; ++round) {
    std::set<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < kKeys; ++i) numbers.insert(random.below(2 * kKeys));
    for (const std::uint64_t number : numbers) this->put(number);
    if (round == kRounds) break;
    for (const std::uint64_t number : numbers) this->tree().erase(this->key(number));
  }
  EXPECT_FALSE(this->backup().leaves_it_should_have().empty());
  this->back_up();
  EXPECT_TRUE(this->complete());
  this->expect_sound();
}

/// Else it would find no entry to take out, and the filing would add one for a leaf that is gone.
/// The first read is that of the backup, once the leaf has been found in its place.
TYPED_TEST(BackupTest, AMergeWaitsUntilItsLeafIsBackedUp) {
  const std::uint64_t last = this->put_until_one_waits(1);
  std::thread eraser;
  std::atomic<bool> merged{false};
  this->rest().before_next_read([&] {
    eraser = std::thread([&] {
      this->tree().erase(this->key(last));
      merged = true;
    });
    // A merge that does not wait is over long before it has used so much.
    const clockid_t clock = util::clock_of(eraser.native_handle());
    util::eventually("the eraser spins, or has merged",
                     [&] { return merged || util::processor_time(clock) >= 2ms; });
    EXPECT_FALSE(merged);
  });
  this->back_up();
  ASSERT_TRUE(eraser.joinable());
  eraser.join();
  EXPECT_EQ(this->tree().size(), last);
  EXPECT_TRUE(this->complete());
  this->expect_sound();
}

TYPED_TEST(BackupTest, ClosingBacksUpTheQueue) {
  for (std::uint64_t i = 0; i < kKeys; ++i) this->put(i);
  this->reopen();
  EXPECT_TRUE(this->complete());
}

TYPED_TEST(BackupTest, ACheckBacksUpTheQueue) {
  for (std::uint64_t i = 0; i < kKeys; ++i) this->put(i);
  this->expect_sound();
  EXPECT_TRUE(this->complete());
}

/// When too many wait, the thread that splits backs up its own.
TYPED_TEST(BackupTest, AFullQueueLeavesNothingOut) {
  constexpr std::uint64_t kMany = 20'000 * kLeafPairs;
  for (std::uint64_t i = 0; i < kMany; ++i) this->put(i);
  const std::size_t before = this->backup().leaves().size();
  EXPECT_GT(before, 0U);
  EXPECT_LT(before, this->backup().leaves_it_should_have().size());
  this->back_up();
  EXPECT_TRUE(this->complete());
}

}  // namespace
}  // namespace perdix::detail::index::sptree
