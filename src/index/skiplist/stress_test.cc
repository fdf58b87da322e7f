// Many threads in one list: nodes come and go between others that do.
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "index/common/test_scans.h"
#include "index/common/test_stress.h"
#include "index/skiplist/test_list.h"
#include "util/random.h"

namespace perdix::detail::index::skiplist {
namespace {

using Number = std::uint64_t;

constexpr unsigned kThreads = 4;

TEST(SkipListStress, Numbers) { StressRun<TestList<Number, Number>, Number>().run(); }
TEST(SkipListStress, Strings) { StressRun<TestList<std::string, Number>, std::string>().run(); }

constexpr SkipListOptions kCached{.dram_budget = kUnlimited, .technique = Technique::boc};

TEST(SkipListStress, NumbersByTheCachedPath) {
  StressRun<TestList<Number, Number>, Number>(kCached).run();
}
TEST(SkipListStress, StringsByTheCachedPath) {
  StressRun<TestList<std::string, Number>, std::string>(kCached).run();
}

/// Of all techniques: a budget for a few ranges, so that buffers also change hands.
constexpr SkipListOptions kBufferedInLittle{.dram_budget = 4000, .technique = Technique::b};

TEST(SkipListStress, NumbersWithBuffers) {
  StressRun<TestList<Number, Number>, Number>(kBufferedInLittle).run();
}
TEST(SkipListStress, StringsWithBuffers) {
  StressRun<TestList<std::string, Number>, std::string>(kBufferedInLittle).run();
}

TEST(SkipListStress, ScansBesideWritersWithBuffers) {
  for (const SkipListOptions& options : {kCached, kBufferedInLittle}) {
    TestList<Number, Number> list(options);
    scan_beside_writers<Number>(list, 40000);
    list.expect_sound_pool();
  }
}

TEST(SkipListStress, ScansBesideWriters) {
  TestList<Number, Number> list;
  scan_beside_writers<Number>(list, 40000);
  list.expect_sound_pool();
}

/// With keys of high towers: no level keeps a node that is gone.
void one_of_several_inserts_wins(const SkipListOptions& options) {
  Numbers list(options);
  index::one_of_several_inserts_wins(list, keys_of_height(4, 12));
}

TEST(SkipListStress, OneOfSeveralInsertsWins) { one_of_several_inserts_wins({}); }
TEST(SkipListStress, OneOfSeveralInsertsWinsByTheCachedPath) {
  one_of_several_inserts_wins(kCached);
}
TEST(SkipListStress, OneOfSeveralInsertsWinsWithBuffers) {
  one_of_several_inserts_wins(kBufferedInLittle);
}

/// A counter in each of few pairs, which threads increment by update_if(): none is lost.
TEST(SkipListStress, NoUpdateIsLost) {
  constexpr Number kRounds = 20000, kShared = 4;
  Numbers list;
  for (Number key = 0; key < kShared; ++key) list->put(key, 0);
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        util::Random random(t + 1);
        for (Number i = 0; i < kRounds; ++i) {
          const Number key = random.below(kShared);
          for (Number value = *list->get(key); !list->update_if(key, value, value + 1);)
            value = *list->get(key);
        }
      });
    }
  }
  Number sum = 0;
  for (Number key = 0; key < kShared; ++key) sum += *list->get(key);
  EXPECT_EQ(sum, kRounds * kThreads);
}

}  // namespace
}  // namespace perdix::detail::index::skiplist
