// The backup of the top layer, while entries wait on their way there: a probe keeps the pool's
// thread from filing them, so this is only in the instrumented build.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <perdix/pool.h>

#include "index/sptree/sptree.h"
#include "index/sptree/test_backup.h"
#include "pm/probe.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::index::sptree {
namespace {

using namespace std::chrono_literals;

/// Keeps the background at rest; calls a function once before a read of persistent memory.
class Rest final : public pm::Probe {
 public:
  Rest() : previous_(pm::install_probe(this)) {}
  Rest(const Rest&) = delete;
  Rest& operator=(const Rest&) = delete;
  ~Rest() override { pm::install_probe(previous_); }

  void before_next_read(std::function<void()> call) { call_ = std::move(call); }

  void on_read(const void*, std::size_t) override {
    if (const auto call = std::exchange(call_, nullptr)) call();
  }
  void on_write(const void*, std::size_t) override {}
  bool on_flush(const void*, std::size_t, const pm::Site&) override { return true; }
  bool on_fence(const pm::Site&) override { return true; }

 private:
  pm::Probe* previous_;
  std::function<void()> call_;
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
  void file() { pool_.core()->background().drain(); }

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
  EXPECT_GT(this->backup().leaves_it_should_have().size(), 5U);
  EXPECT_TRUE(this->backup().leaves().empty());
  this->file();
  EXPECT_TRUE(this->complete());
  this->expect_sound();
}

TYPED_TEST(BackupTest, WhatIsMergedAwayMeanwhileIsNotFiled) {
  for (std::uint64_t i = 0; i < kKeys; ++i) this->put(i);
  for (std::uint64_t i = kKeys; i-- > 1;) this->tree().erase(this->key(i));
  ASSERT_TRUE(this->backup().leaves_it_should_have().empty());
  this->file();
  EXPECT_TRUE(this->backup().leaves().empty());
  this->expect_sound();
}

/// The blocks of leaves that were merged away are leaves again, with other bounds, some of which
/// cover a bound that waits.
TYPED_TEST(BackupTest, AnEntryOfAnEarlierLeafOfTheSameBlockIsNotFiled) {
  util::Random random(1);
  for (int round = 0; round < 40; ++round) {
    std::set<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < 20 * kLeafPairs; ++i) numbers.insert(random.below(kKeys));
    for (const std::uint64_t number : numbers) this->put(number);
    if (round == 39) break;
    for (const std::uint64_t number : numbers) this->tree().erase(this->key(number));
  }
  EXPECT_GT(this->backup().leaves_it_should_have().size(), 1U);
  this->file();
  EXPECT_TRUE(this->complete());
  this->expect_sound();
}

/// Else it would find no entry to take out, and the filing would add one for a leaf that is gone.
/// The first read is that of the backup, once the leaf has been found in its place.
TYPED_TEST(BackupTest, AMergeWaitsUntilItsLeafIsFiled) {
  std::uint64_t last = 0;
  const auto ends_with_a_leaf_to_file = [&] {
    const auto leaves = this->backup().leaves_it_should_have();
    return !leaves.empty() && this->key(last - 1) < leaves.rbegin()->first;
  };
  for (this->put(last); !ends_with_a_leaf_to_file(); this->put(last)) {
    this->file();
    ++last;
  }
  std::thread eraser;
  std::atomic<bool> merged{false};
  this->rest().before_next_read([&] {
    eraser = std::thread([&] {
      this->tree().erase(this->key(last));
      merged = true;
    });
    // As long as a merge may take that does not wait.
    for (int i = 0; i < 50 && !merged; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_FALSE(merged);
  });
  this->file();
  ASSERT_TRUE(eraser.joinable());
  eraser.join();
  EXPECT_EQ(this->tree().size(), last);
  EXPECT_TRUE(this->complete());
  this->expect_sound();
}

TYPED_TEST(BackupTest, ClosingFilesWhatWaits) {
  for (std::uint64_t i = 0; i < kKeys; ++i) this->put(i);
  this->reopen();
  EXPECT_TRUE(this->complete());
}

TYPED_TEST(BackupTest, ACheckFilesWhatWaits) {
  for (std::uint64_t i = 0; i < kKeys; ++i) this->put(i);
  this->expect_sound();
  EXPECT_TRUE(this->complete());
}

/// When too many wait, whoever splits files his own.
TYPED_TEST(BackupTest, AFullQueueLeavesNothingOut) {
  constexpr std::uint64_t kMany = 20'000 * kLeafPairs;
  for (std::uint64_t i = 0; i < kMany; ++i) this->put(i);
  const std::size_t before = this->backup().leaves().size();
  EXPECT_GT(before, 0U);
  EXPECT_LT(before, this->backup().leaves_it_should_have().size());
  this->file();
  EXPECT_TRUE(this->complete());
}

}  // namespace
}  // namespace perdix::index::sptree
