// Threads that come and go, several indexes of a pool in use together, a pool that becomes full.
#include <algorithm>
#include <string>
#include <vector>

#include "concurrency/thread_group.h"

namespace perdix::test {
namespace {

/// Puts, updates, reads and erases the keys that only this thread has; `stays` of them stay.
void use(AnyIndex& index, Verdict& verdict, const std::vector<Datum>& keys, std::size_t first,
         std::size_t count, std::size_t stays) {
  for (std::size_t i = first; i < first + count; ++i)
    index.put(keys[i], marked(index.value_kind(), i, 1));
  for (std::size_t i = first; i < first + count; ++i) {
    verdict.expect(index.update(keys[i], marked(index.value_kind(), i, 2)),
                   [&] { return "update " + show(keys[i]); });
    const auto value = index.get(keys[i]);
    verdict.expect(value && version_of(verdict, i, *value) == 2,
                   [&] { return "get " + show(keys[i]) + " after update"; });
  }
  for (std::size_t i = first + stays; i < first + count; ++i) {
    verdict.expect(index.erase(keys[i]), [&] { return "erase " + show(keys[i]); });
  }
}

// Hundreds of threads that live for some operations: what belongs to a thread must be given back.
const Contract short_lived(
    "threads_come_and_go_by_the_hundreds",
    [](Fixture& fixture) {
      constexpr std::size_t kAtOnce = 8;
      constexpr std::size_t kEach = 12;
      const std::size_t groups = fixture.count(50);
      auto index = fixture.open();
      auto keys = fixture.keys_of(groups * kAtOnce * kEach, KeyStyle::dense);
      std::shuffle(keys.begin(), keys.end(), fixture.rng());
      Verdict verdict;
      for (std::size_t group_number = 0; group_number < groups && verdict.ok(); ++group_number) {
        ThreadGroup group;
        group.add(kAtOnce, [&](unsigned thread) {
          const std::size_t first = (group_number * kAtOnce + thread) * kEach;
          use(index, verdict, keys, first, kEach, kEach / 2);
        });
        group.run(verdict);
      }
      EXPECT_EQ(index.size(), groups * kAtOnce * (kEach / 2));
      EXPECT_TRUE(index.check().ok()) << problems_of(index.check());
    },
    kInMemory);

// Threads work on all indexes of a pool while others open, fill, close and drop more of them.
const Contract side_by_side(
    "indexes_of_a_pool_are_used_at_once",
    [](Fixture& fixture) {
      constexpr std::size_t kEach = 40;
      const std::size_t rounds = fixture.count(40);
      std::vector<AnyIndex> indexes;
      for (int i = 0; i < 3; ++i) indexes.push_back(fixture.open("index " + std::to_string(i)));
      const auto keys = fixture.keys_of(4 * kEach, KeyStyle::dense);
      Pool pool = fixture.pool();
      Verdict verdict;
      ThreadGroup group;
      group.add(2, [&](unsigned thread) {
        for (std::size_t round = 0; round < rounds && verdict.ok(); ++round) {
          for (auto& index : indexes) use(index, verdict, keys, thread * kEach, kEach, 0);
        }
      });
      group.add(2, [&](unsigned thread) {
        const std::string name = "passing " + std::to_string(thread);
        for (std::size_t round = 0; round < rounds / 2 + 1 && verdict.ok(); ++round) {
          {
            AnyIndex index = fixture.type().open(pool, name);
            use(index, verdict, keys, (2 + thread) * kEach, kEach, kEach / 2);
            verdict.expect(index.size() == kEach / 2, [] { return "size of a passing index"; });
          }
          pool.drop(name);
        }
      });
      group.add(1, [&](unsigned) {
        for (std::size_t round = 0; round < rounds && verdict.ok(); ++round) {
          verdict.expect(pool.indexes().size() >= indexes.size(),
                         [] { return "an index is gone"; });
          verdict.expect(pool.info().allocated <= pool.info().size, [] { return "sizes"; });
          for (const auto& index : indexes) index.stats();
        }
      });
      group.run(verdict);
      for (const auto& index : indexes) {
        EXPECT_EQ(index.size(), 0U);
        EXPECT_TRUE(index.check().ok()) << problems_of(index.check());
      }
      EXPECT_EQ(pool.indexes().size(), indexes.size());
    },
    kInMemory);

// The pool grows while all threads write to it, and nothing is lost afterwards.
const Contract growth(
    "the_pool_grows_under_threads", bytes_values,
    [](Fixture& fixture) {
      constexpr unsigned kThreads = 4;
      const std::size_t each = fixture.count(500);
      auto keys = fixture.keys_of(kThreads * each, KeyStyle::dense);
      std::optional<AnyIndex> index(fixture.open());
      Verdict verdict;
      ThreadGroup group;
      group.add(kThreads, [&](unsigned thread) {
        for (std::size_t i = thread; i < keys.size(); i += kThreads) {
          index->put(keys[i], bytes_of(i, 20'000));
        }
      });
      group.run(verdict);
      EXPECT_GE(fixture.pool().info().size, keys.size() * 20'000);
      fixture.reopen(index);
      EXPECT_EQ(index->size(), keys.size());
      for (std::size_t i = 0; i < keys.size(); ++i) {
        ASSERT_EQ(index->get(keys[i]), bytes_of(i, 20'000)) << i;
      }
    },
    kInMemory);

/// A value of 30 to 70 KB.
std::string wide_bytes(std::size_t key, std::uint64_t version) {
  return bytes_of(key << 32 | version, 30'000 + mix(version) % 40'000);
}

// A full pool: each put either throws and changes nothing, or stays. Erasing makes room again.
const Contract full(
    "a_pool_fills_up_under_threads", bytes_values,
    [](Fixture& fixture) {
      constexpr unsigned kThreads = 4;
      constexpr std::size_t kKeys = 600;
      PoolOptions options = fixture.options();
      options.max_size = 16 << 20;
      fixture.replace_pool(options);
      auto index = fixture.open();
      const auto keys = fixture.keys_of(kKeys, KeyStyle::dense);
      const std::size_t steps = std::max<std::size_t>(300, fixture.count(1500));
      std::vector<std::uint64_t> held(keys.size(),
                                      0);  // by key: its version, 0 if none; one writer
      const std::uint64_t seed = fixture.rng()();
      std::atomic<std::size_t> refused{0};
      Verdict verdict;
      ThreadGroup group;
      group.add(kThreads, [&](unsigned thread) {
        Rng rng(seed + thread);
        for (std::uint64_t version = 1; version <= steps && verdict.ok(); ++version) {
          const std::size_t key = rng.below(keys.size() / kThreads) * kThreads + thread;
          const bool erase = rng.once_in(5);
          const auto error = error_of([&] {
            if (erase)
              index.erase(keys[key]);
            else
              index.put(keys[key], wide_bytes(key, version));
          });
          if (!error)
            held[key] = erase ? 0 : version;
          else if (*error == Errc::out_of_space && !erase)
            refused.fetch_add(1);
          else
            verdict.fail("an operation failed with " + std::string(to_string(*error)));
        }
      });
      group.run(verdict);
      EXPECT_GT(refused.load(), 0U) << "the pool was never full";
      for (std::size_t key = 0; key < keys.size(); ++key) {
        const std::uint64_t version = held[key];
        const auto expected = version == 0 ? std::nullopt : std::optional(wide_bytes(key, version));
        ASSERT_TRUE(index.get(keys[key]) == expected) << "key " << key << ", version " << version;
      }
      EXPECT_TRUE(index.check().ok()) << problems_of(index.check());
    },
    kInProcess);

}  // namespace
}  // namespace perdix::test
