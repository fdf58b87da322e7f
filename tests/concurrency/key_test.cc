// Keys under several threads: each finds what it has written to its own. Of one that all write,
// versions only grow, exactly one insert and one erase succeed, and counters add up.
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <string>
#include <vector>

#include "concurrency/thread_group.h"
#include "pool/pool_core.h"

namespace perdix::test {
namespace {

/// Each thread has its own keys, between those of the others, and knows what it has written. It
/// grows and shrinks in turn, so that leaves split and join.
struct OwnKeys {
  OwnKeys(Fixture& fixture, AnyIndex& the_index)
      : index(the_index),
        keys(close_keys(fixture, 1200)),
        steps(std::max<std::size_t>(12'000, fixture.count(12'000))),
        seed(fixture.rng()()) {}

  void write(unsigned thread) {
    Rng rng(seed + thread);
    Model& model = models[thread];
    for (std::size_t step = 0; step < steps && verdict.ok(); ++step) {
      const Datum& key = keys[rng.below(keys.size() / kThreads) * kThreads + thread];
      const bool grows = step / (steps / 8 + 1) % 2 == 0;
      constexpr std::array kAdding = {Op::insert, Op::update, Op::put, Op::put};
      const Op op = rng.once_in(8) != grows ? kAdding[rng.below(kAdding.size())] : Op::erase;
      expect_known(model, key);
      const Datum value = marked(index.value_kind(), thread, step + 1);
      if (op == Op::insert && rng.once_in(2)) {
        index.insert_ahead(key, value);
        model.insert(key, value);
      } else {
        const std::string wrong = compare_step(index, model, {op, 0, 0}, key, value);
        verdict.expect(wrong.empty(), [&] { return wrong; });
      }
      expect_known(model, key);
    }
    writers_left.fetch_sub(1);
  }

  void expect_known(const Model& model, const Datum& key) {
    verdict.expect(index.get(key) == model.get(key), [&] { return "not its own " + show(key); });
  }

  static constexpr unsigned kThreads = 4;

  AnyIndex& index;
  std::vector<Datum> keys;
  std::size_t steps;
  std::uint64_t seed;
  std::array<Model, kThreads> models;
  std::atomic<unsigned> writers_left{kThreads};
  Verdict verdict;
};

const Contract own_keys(
    "a_thread_finds_what_it_has_written",
    [](Fixture& fixture) {
      std::optional<AnyIndex> index(fixture.open());
      OwnKeys test(fixture, *index);
      ThreadGroup group;
      group.add(OwnKeys::kThreads, [&](unsigned i) { test.write(i); });
      group.add(1, [&](unsigned) {
        while (test.writers_left.load() > 0 && test.verdict.ok()) {
          fixture.pool().core()->reclaim_space();
          (void)test.index.size();
          (void)test.index.stats();
        }
      });
      group.run(test.verdict);
      Model all;
      for (const Model& model : test.models)
        for (const auto& [key, value] : model) all.put(key, value);
      EXPECT_EQ("", compare_all(*index, all, test.keys)) << "at rest";
      fixture.reopen(index);
      EXPECT_EQ("", compare_all(*index, all, test.keys)) << "after reopening";
    },
    kInMemory);

/// Keys at even positions have one writer each and always a value; those at odd positions come and
/// go around them, so that leaves split and merge under the readers.
struct Versions {
  Versions(Fixture& fixture, AnyIndex& the_index, std::size_t key_count, std::size_t steps_each)
      : index(the_index),
        keys(close_keys(fixture, key_count)),
        steps(steps_each),
        seed(fixture.rng()()) {
    for (std::size_t i = 0; i < keys.size(); i += 2)
      index.put(keys[i], marked(index.value_kind(), i, 1));
    written.assign(keys.size(), 1);
  }

  /// Writes ever newer versions of every second even key, by put() and update() in turn.
  void write(unsigned writer) {
    Rng rng(seed + writer);
    for (std::size_t i = 0; i < steps && verdict.ok(); ++i) {
      const std::size_t key = rng.below((keys.size() - 2 * writer + 3) / 4) * 4 + 2 * writer;
      const Datum value = marked(index.value_kind(), key, ++written[key]);
      if (rng.once_in(2)) {
        index.put(keys[key], value);
      } else {
        verdict.expect(index.update(keys[key], value),
                       [&] { return "update() does not find " + show(keys[key]); });
      }
    }
    writers_left.fetch_sub(1);
  }

  /// Inserts and erases the odd keys in waves.
  void disturb(unsigned) {
    while (writers_left.load() > 0 && verdict.ok()) {
      for (std::size_t i = 1; i < keys.size(); i += 2)
        index.put(keys[i], marked(index.value_kind(), i, 1));
      for (std::size_t i = 1; i < keys.size(); i += 2) index.erase(keys[i]);
    }
  }

  void see(std::vector<std::uint64_t>& seen, std::size_t key, std::uint64_t version) {
    verdict.expect(version >= seen[key], [&] {
      return fmt::format("key {} went back from version {} to {}", key, seen[key], version);
    });
    seen[key] = version;
  }

  void read(unsigned reader) {
    Rng rng(seed + 100 + reader);
    std::vector<std::uint64_t> seen(keys.size(), 1);
    while (writers_left.load() > 0 && verdict.ok()) {
      const std::size_t key = rng.below((keys.size() + 1) / 2) * 2;
      const auto value = index.get(keys[key]);
      if (!verdict.expect(value.has_value(), [&] { return "lost key " + show(keys[key]); })) break;
      see(seen, key, version_of(verdict, key, *value));
    }
  }

  /// Reads the even keys in random batches, whose versions never go back.
  void read_many(unsigned reader) {
    Rng rng(seed + 200 + reader);
    std::vector<std::uint64_t> seen(keys.size(), 1);
    while (writers_left.load() > 0 && verdict.ok()) {
      std::vector<std::size_t> wanted(1 + rng.below(40));
      std::vector<Datum> batch;
      for (std::size_t& key : wanted) {
        key = rng.below((keys.size() + 1) / 2) * 2;
        batch.push_back(keys[key]);
      }
      const auto values = index.get_many(batch);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (!verdict.expect(values[i].has_value(), [&] { return "lost key " + show(batch[i]); }))
          return;
        see(seen, wanted[i], version_of(verdict, wanted[i], *values[i]));
      }
    }
  }

  void scan(unsigned) {
    std::vector<std::uint64_t> seen(keys.size(), 1);
    while (writers_left.load() > 0 && verdict.ok()) {
      index.scan(Datum::least(index.key_kind()), [&](DatumView shown, DatumView value) {
        const std::size_t key = position(keys, shown);
        if (key % 2 == 0) see(seen, key, version_of(verdict, key, value));
        return verdict.ok();
      });
    }
  }

  AnyIndex& index;
  std::vector<Datum> keys;
  std::size_t steps;
  std::uint64_t seed;
  std::vector<std::uint64_t> written;  // each element has one writer
  std::atomic<int> writers_left{2};
  Verdict verdict;
};

const Contract never_back(
    "a_key_never_goes_back_to_an_older_value",
    [](Fixture& fixture) {
      auto index = fixture.open();
      Versions test(fixture, index, 300, fixture.count(8000));
      ThreadGroup group;
      group.add(2, [&](unsigned i) { test.write(i); });
      group.add(1, [&](unsigned i) { test.disturb(i); });
      group.add(1, [&](unsigned i) { test.read(i); });
      group.add(1, [&](unsigned i) { test.read_many(i); });
      if (index.ordered()) group.add(1, [&](unsigned i) { test.scan(i); });
      group.run(test.verdict);
      // Each update was counted: the last version is the number of writes.
      for (std::size_t i = 0; i < test.keys.size(); i += 2) {
        const auto value = index.get(test.keys[i]);
        ASSERT_TRUE(value.has_value()) << i;
        EXPECT_EQ(version_of(test.verdict, i, *value), test.written[i]) << i;
      }
      EXPECT_TRUE(index.check().ok()) << problems_of(index.check());
    },
    kInMemory);

/// A few keys are written all the time. A visit shows of each at least what was acknowledged
/// before.
struct Acknowledged {
  Acknowledged(Fixture& fixture, AnyIndex& the_index, std::size_t visits_each)
      : index(the_index), keys(close_keys(fixture, kKeys)), visits(visits_each) {
    for (std::size_t i = 0; i < kKeys; ++i) put(i, 1);
  }

  void put(std::size_t key, std::uint64_t version) {
    index.put(keys[key], marked(index.value_kind(), key, version));
    acknowledged[key].store(version, std::memory_order_release);
  }

  void write(unsigned writer) {
    for (std::uint64_t version = 2; visitors_left.load() > 0 && verdict.ok(); ++version)
      for (std::size_t i = writer; i < kKeys; i += kWriters) put(i, version);
  }

  void visit(unsigned) {
    for (std::size_t i = 0; i < visits && verdict.ok(); ++i) visit_once();
    visitors_left.fetch_sub(1);
  }

  void visit_once() {
    std::array<std::uint64_t, kKeys> least{};
    for (std::size_t i = 0; i < kKeys; ++i)
      least[i] = acknowledged[i].load(std::memory_order_acquire);
    index.for_each([&](DatumView shown, DatumView value) {
      const std::size_t key = position(keys, shown);
      const std::uint64_t version = version_of(verdict, key, value);
      return verdict.expect(version >= least[key], [&] {
        return fmt::format("key {} has version {}, after {} was acknowledged", key, version,
                           least[key]);
      });
    });
  }

  static constexpr std::size_t kKeys = 8;
  static constexpr unsigned kWriters = 2;

  AnyIndex& index;
  std::vector<Datum> keys;
  std::size_t visits;
  std::array<std::atomic<std::uint64_t>, kKeys> acknowledged{};
  std::atomic<int> visitors_left{1};
  Verdict verdict;
};

const Contract no_older_value(
    "for_each_shows_what_was_acknowledged",
    [](Fixture& fixture) {
      auto index = fixture.open();
      Acknowledged test(fixture, index, fixture.count(300));
      ThreadGroup group;
      group.add(Acknowledged::kWriters, [&](unsigned i) { test.write(i); });
      group.add(1, [&](unsigned i) { test.visit(i); });
      group.run(test.verdict);
      EXPECT_TRUE(index.check().ok()) << problems_of(index.check());
    },
    kInMemory);

/// All threads insert the same new keys, then all erase them, each in a different order.
const Contract one_winner(
    "one_insert_and_one_erase_win",
    [](Fixture& fixture) {
      constexpr unsigned kThreads = 4;
      auto index = fixture.open();
      const auto keys = close_keys(fixture, 160);
      const std::size_t rounds = fixture.count(60);
      std::vector<std::atomic<unsigned>> inserted(keys.size());
      std::vector<std::atomic<unsigned>> erased(keys.size());
      std::vector<std::atomic<unsigned>> winner(keys.size());
      Verdict verdict;
      std::size_t round = 0;
      const auto compare = [&](const std::vector<std::atomic<unsigned>>& wins,
                               bool present) noexcept {
        for (std::size_t i = 0; i < keys.size(); ++i) {
          verdict.expect(wins[i].load() == round + 1, [&] {
            return fmt::format("key {}: {} wins in {} rounds", i, wins[i].load(), round + 1);
          });
          const auto value = index.get(keys[i]);
          verdict.expect(value.has_value() == present,
                         [&] { return "presence of key " + show(keys[i]); });
          if (value) {
            verdict.expect(version_of(verdict, i, *value) == winner[i].load() + 1,
                           [&] { return "the value of another than the winner"; });
          }
        }
      };
      bool inserting = true;
      std::barrier turn(kThreads, [&]() noexcept {
        compare(inserting ? inserted : erased, inserting);
        if (!inserting) ++round;
        inserting = !inserting;
      });
      const auto task = [&](unsigned thread) {
        for (std::size_t r = 0; r < rounds; ++r) {
          for (std::size_t j = 0; j < keys.size(); ++j) {
            const std::size_t i = (j + thread % 2 * 5) % keys.size();
            if (!index.insert(keys[i], marked(index.value_kind(), i, thread + 1))) continue;
            inserted[i].fetch_add(1);
            winner[i].store(thread);
          }
          turn.arrive_and_wait();
          for (std::size_t j = 0; j < keys.size(); ++j) {
            const std::size_t i = thread % 2 == 0 ? j : keys.size() - 1 - j;
            if (index.erase(keys[i])) erased[i].fetch_add(1);
          }
          turn.arrive_and_wait();
        }
      };
      ThreadGroup group;
      group.add(kThreads, task);
      group.run(verdict);
      EXPECT_EQ(index.size(), 0U);
      EXPECT_TRUE(index.check().ok()) << problems_of(index.check());
    },
    kInMemory);

// Inserts and erases of some hot keys: what was inserted and not erased is there.
const Contract books_balance(
    "inserts_and_erases_add_up",
    [](Fixture& fixture) {
      constexpr unsigned kThreads = 4;
      auto index = fixture.open();
      const auto keys = close_keys(fixture, 90);
      const std::size_t steps = fixture.count(12'000);
      std::vector<std::atomic<long>> balance(keys.size());
      const std::uint64_t seed = fixture.rng()();
      Verdict verdict;
      ThreadGroup group;
      group.add(kThreads, [&](unsigned thread) {
        Rng rng(seed + thread);
        for (std::size_t step = 0; step < steps && verdict.ok(); ++step) {
          const std::size_t key = rng.below(rng.once_in(2) ? 8 : keys.size());
          const auto value = marked(index.value_kind(), key, step + 1);
          switch (rng.below(4)) {
            case 0: balance[key].fetch_sub(index.erase(keys[key]) ? 1 : 0); break;
            case 1: index.update(keys[key], value); break;
            case 2: {
              const auto found = index.get(keys[key]);
              if (found) version_of(verdict, key, *found);
              break;
            }
            default: balance[key].fetch_add(index.insert(keys[key], value) ? 1 : 0); break;
          }
        }
      });
      group.run(verdict);
      std::uint64_t present = 0;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const bool there = index.contains(keys[i]);
        present += there ? 1 : 0;
        EXPECT_EQ(balance[i].load(), there ? 1 : 0) << "inserts minus erases of key " << i;
      }
      EXPECT_EQ(index.size(), present);
      EXPECT_EQ(index.check().pairs, present);
      EXPECT_TRUE(index.check().ok()) << problems_of(index.check());
    },
    kInMemory);

// Several writers of each key: the value that stays is the last one of some writer.
const Contract last_value(
    "the_value_that_stays_is_the_last_of_a_writer",
    [](Fixture& fixture) {
      constexpr unsigned kThreads = 3;
      auto index = fixture.open();
      const auto keys = close_keys(fixture, 60);
      for (std::size_t i = 0; i < keys.size(); ++i)
        index.put(keys[i], marked(index.value_kind(), i, 1));
      const std::size_t steps = fixture.count(8000);
      std::vector<std::array<std::uint64_t, kThreads>> last(keys.size());
      const std::uint64_t seed = fixture.rng()();
      Verdict verdict;
      ThreadGroup group;
      group.add(kThreads, [&](unsigned thread) {
        Rng rng(seed + thread);
        for (std::size_t step = 1; step <= steps && verdict.ok(); ++step) {
          const std::size_t key = rng.below(keys.size());
          const std::uint64_t version = step * kThreads + thread;
          verdict.expect(index.update(keys[key], marked(index.value_kind(), key, version)),
                         [&] { return "update() does not find " + show(keys[key]); });
          last[key][thread] = version;
        }
      });
      group.run(verdict);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto value = index.get(keys[i]);
        ASSERT_TRUE(value.has_value()) << "key " << i;
        const std::uint64_t version = version_of(verdict, i, *value);
        const bool untouched =
            std::all_of(last[i].begin(), last[i].end(), [](auto v) { return v == 0; });
        EXPECT_TRUE(std::count(last[i].begin(), last[i].end(), version) == 1 || untouched)
            << "key " << i << " has version " << version;
      }
    },
    kInMemory);

}  // namespace
}  // namespace perdix::test
