// Many threads make changes that depend on the value: each change takes effect exactly once.
#include <algorithm>
#include <atomic>
#include <vector>

#include "concurrency/thread_group.h"

namespace perdix::test {
namespace {

/// Threads count up a few counters, which others erase: what an erase takes away was counted.
struct Counters {
  Counters(Fixture& fixture, AnyIndex& the_index, std::size_t each)
      : index(the_index), keys(close_keys(fixture, 24)), steps(each), seed(fixture.rng()()) {}

  void count(unsigned thread) {
    Rng rng(seed + thread);
    for (std::size_t i = 0; i < steps && verdict.ok(); ++i) {
      const std::size_t key = rng.below(keys.size());
      index.update_with(keys[key], [&](std::optional<DatumView> before) {
        const std::uint64_t value = before ? version_of(verdict, key, *before) : 0;
        return marked(index.value_kind(), key, value + 1);
      });
    }
  }

  void take(unsigned thread) {
    Rng rng(seed + 100 + thread);
    for (std::size_t i = 0; i < steps / 8 && verdict.ok(); ++i) {
      const std::size_t key = rng.below(keys.size());
      std::uint64_t value = 0;
      index.update_with(keys[key], [&](std::optional<DatumView> before) {
        value = before ? version_of(verdict, key, *before) : 0;
        return std::nullopt;
      });
      taken += value;
    }
  }

  AnyIndex& index;
  std::vector<Datum> keys;
  std::size_t steps;
  std::uint64_t seed;
  std::atomic<std::uint64_t> taken{0};
  Verdict verdict;
};

const Contract no_step_is_lost(
    "update_with_of_many_threads_loses_no_step",
    [](Fixture& fixture) {
      constexpr unsigned kThreads = 3;
      auto index = fixture.open();
      // So that leaves split and join around the counters.
      const auto others = fixture.keys_of(400, KeyStyle::dense);
      Counters test(fixture, index, fixture.count(6000));
      std::atomic<bool> done{false};
      ThreadGroup group;
      std::atomic<unsigned> left{kThreads};
      group.add(kThreads, [&](unsigned i) {
        test.count(i);
        if (--left == 0) done = true;
      });
      group.add(1, [&](unsigned i) { test.take(i); });
      group.add(1, [&](unsigned) {
        const auto is_other = [&](const Datum& key) {
          return std::find(test.keys.begin(), test.keys.end(), key) == test.keys.end();
        };
        while (!done && test.verdict.ok()) {
          for (const Datum& key : others)
            if (is_other(key))
              index.put(key, fixture.value_kind() == Kind::u64 ? Datum(1) : bytes_of(1, 9));
          for (const Datum& key : others)
            if (is_other(key)) index.erase(key);
        }
        for (const Datum& key : others)
          if (is_other(key)) index.erase(key);
      });
      group.run(test.verdict);
      std::uint64_t sum = test.taken;
      for (std::size_t i = 0; i < test.keys.size(); ++i) {
        if (const auto value = index.get(test.keys[i])) sum += version_of(test.verdict, i, *value);
      }
      EXPECT_EQ(sum, kThreads * test.steps);
      EXPECT_TRUE(index.check().ok()) << problems_of(index.check());
    },
    kInMemory);

}  // namespace
}  // namespace perdix::test
