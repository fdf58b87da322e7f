// Which lines operations of two threads share, for every engine: none on the way of a lookup, and
// on that of a change its lock. Counters and the like are by stripes of threads. The engines that
// share more say why below.
//
// One thread changes a pair and the other one changes it back, each with every instruction watched.
// What both have written by locked instructions is shared.
#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/index.h>
#include <perdix/pool.h>

#include "lines/locked_lines.h"
#include "pool/pool_core.h"
#include "util/test_directory.h"

namespace perdix::test {
namespace {

constexpr std::uint64_t kPairs = 20'000;
constexpr std::uint64_t kWatched = 12;

/// A thread that does what it is told, in turn with the one that tells it.
class Worker {
 public:
  Worker() : thread_([this] { serve(); }) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() { call(nullptr), thread_.join(); }

  Lines watch(const std::function<void()>& work) {
    Lines lines;
    run([&] { lines = locked_lines(work); });
    return lines;
  }

  void run(const std::function<void()>& work) { call(&work); }

 private:
  void call(const std::function<void()>* work) {
    std::unique_lock lock(mutex_);
    work_ = work;
    asked_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !asked_; });
  }

  void serve() {
    for (bool more = true; more;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return asked_; });
      more = work_ != nullptr;
      if (more) (*work_)();
      asked_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  bool asked_ = false;
  std::thread thread_;
};

std::string bytes_of(std::uint64_t number) {
  std::string bytes(sizeof number, '\0');
  for (char& byte : bytes) byte = static_cast<char>(number >> 56), number <<= 8;
  return bytes;
}

/// Random, and each key once.
std::string key(std::uint64_t number) { return bytes_of(number * 0x9e37'79b9'7f4a'7c15); }

/// An engine, and how many lines a change may share.
struct Bound {
  const char* engine;
  std::size_t update = 1;
  std::size_t insert = 1;  ///< and erase
};

class SharedLines : public ::testing::TestWithParam<Bound> {
 protected:
  SharedLines() {
    for (std::uint64_t i = 0; i < kPairs; ++i) index_->put(key(i), bytes_of(i));
    index_->size();  // all is back
    for (Worker* worker : {&a_, &b_}) {
      worker->run([&] {  // what a thread needs for the first time
        for (std::uint64_t i = 0; i < 100; ++i) {
          index_->put(key(i), bytes_of(i));
          index_->get(key(i));
        }
      });
    }
    pool_.core()->background().drain();
  }

  /// The number of lines that most of the pairs of calls share: some of them split a leaf.
  std::size_t shared(const std::function<void(std::uint64_t)>& change,
                     const std::function<void(std::uint64_t)>& undo, const char* what) {
    std::vector<std::size_t> counts;
    for (std::uint64_t i = 0; i < kWatched; ++i) {
      const Lines first = a_.watch([&] { change(i); });
      counts.push_back(common_lines(first, b_.watch([&] { undo(i); })).size());
    }
    std::ranges::sort(counts);
    fmt::print("{}: {}: {} to {} lines, {} as a rule\n", GetParam().engine, what, counts.front(),
               counts.back(), counts[kWatched / 2]);
    return counts[kWatched / 2];
  }

  testing_files::TempDirectory folder_{testing_files::memory_directory()};
  Pool pool_ = Pool::create(folder_.path() / "pool");
  std::unique_ptr<Index> index_ =
      Index::open_or_create(pool_, {"index", GetParam().engine, Kind::u64, Kind::u64});
  Worker a_, b_;
};

TEST_P(SharedLines, NoneOnTheWayOfALookup) {
  const auto get = [&](std::uint64_t i) { index_->get(key(i)); };
  EXPECT_EQ(shared(get, get, "get"), 0u);
}

TEST_P(SharedLines, TheLockOnTheWayOfAChange) {
  const auto update = [&](std::uint64_t i) { index_->update(key(i), bytes_of(1)); };
  const auto insert = [&](std::uint64_t i) { index_->insert(key(kPairs + i), bytes_of(1)); };
  const auto erase = [&](std::uint64_t i) { index_->erase(key(kPairs + i)); };
  EXPECT_LE(shared(update, update, "update"), GetParam().update);
  EXPECT_LE(shared(insert, erase, "insert and erase"), GetParam().insert);
}

constexpr Bound kBounds[] = {
    {"sptree"},
    {"fastfair"},
    {"nbtree", 1, 2},  // no lock: the entry, and the bits of its leaf that show it
    {"elimda"},
    {"cceh"},
    {"skiplist", 1, 2},     // the latches of the node and of its left neighbour
    {"tips:hash", 12, 10},  // its log, its cache and what they wait for
    {"tips:btree", 12, 10},
};

INSTANTIATE_TEST_SUITE_P(Engines, SharedLines, ::testing::ValuesIn(kBounds), [](const auto& of) {
  std::string name = of.param.engine;
  std::ranges::replace(name, ':', '_');
  return name;
});

}  // namespace
}  // namespace perdix::test
