// Scans while leaves split, merge and vanish. Keys ascend strictly. A scan shows every key that
// stays, and no key that was never there.
#include <optional>
#include <string>
#include <vector>

#include "concurrency/thread_group.h"

namespace perdix::test {
namespace {

/// Every `stay_every`th key stays; of the rest, one in three is never inserted and the others come
/// and go in waves.
struct Waves {
  enum class Fate { stays, never, comes_and_goes };

  Waves(Fixture& fixture, AnyIndex& the_index, std::size_t key_count, std::size_t every,
        std::size_t waves_each)
      : index(the_index),
        keys(close_keys(fixture, key_count)),
        stay_every(every),
        waves(waves_each),
        seed(fixture.rng()()) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (fate(i) == Fate::stays) index.put(keys[i], marked(index.value_kind(), i, 1));
    }
  }

  Fate fate(std::size_t key) const {
    if (key % stay_every == 0) return Fate::stays;
    return key % 3 == 1 ? Fate::never : Fate::comes_and_goes;
  }

  /// Fills and empties one half of the key range, in either direction.
  void disturb(unsigned half) {
    Rng rng(seed + half);
    const std::size_t begin = half * keys.size() / 2;
    const std::size_t end = begin + keys.size() / 2;
    const auto each = [&](auto&& call) {
      const bool down = rng.once_in(2);
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t key = down ? begin + end - 1 - i : i;
        if (fate(key) == Fate::comes_and_goes) call(key);
      }
    };
    for (std::size_t wave = 0; wave < waves && verdict.ok(); ++wave) {
      each([&](std::size_t key) {
        index.put(keys[key], marked(index.value_kind(), key, wave + 1));
      });
      each([&](std::size_t key) {
        verdict.expect(index.erase(keys[key]), [&] { return "lost " + show(keys[key]); });
      });
    }
    disturbers_left.fetch_sub(1);
  }

  /// Scans from a random key and verifies each row and what lies between rows.
  void scan(unsigned scanner) {
    Rng rng(seed + 100 + scanner);
    while (disturbers_left.load() > 0 && verdict.ok()) {
      const std::size_t from = rng.once_in(3) ? 0 : rng.below(keys.size());
      const std::size_t limit = rng.once_in(2) ? keys.size() : rng.between(1, 200);
      std::size_t next = from;  // position of the first key that has not been passed
      std::size_t rows = 0;
      index.scan(keys[from], [&](DatumView shown, DatumView value) {
        next = pass(next, shown, value);
        return ++rows < limit && verdict.ok();
      });
      if (rows < limit) pass_until(next, keys.size());
    }
  }

  void scan_limited(unsigned scanner) {
    Rng rng(seed + 200 + scanner);
    while (disturbers_left.load() > 0 && verdict.ok()) {
      std::size_t next = rng.below(keys.size());
      const std::size_t limit = rng.between(1, 150);
      const auto rows = index.scan(keys[next], limit);
      verdict.expect(rows.size() <= limit, [] { return "more rows than the limit"; });
      for (const auto& [key, value] : rows) next = pass(next, key, value);
      if (rows.size() < limit) pass_until(next, keys.size());
    }
  }

  /// Shows everything, in no order: those that stay once, the others at most once.
  void visit_all() {
    while (disturbers_left.load() > 0 && verdict.ok()) {
      std::vector<int> times(keys.size());
      index.for_each([&](DatumView shown, DatumView value) {
        if (const auto key = known(shown, value)) ++times[*key];
        return verdict.ok();
      });
      for (std::size_t i = 0; i < keys.size() && verdict.ok(); ++i) {
        verdict.expect(times[i] <= 1 && (fate(i) != Fate::stays || times[i] == 1), [&] {
          return "for_each shows " + show(keys[i]) + " " + std::to_string(times[i]) + " times";
        });
      }
    }
  }

  /// The position of a key that is shown, if it may be.
  std::optional<std::size_t> known(DatumView shown, DatumView value) {
    const std::size_t key = position(keys, shown);
    if (!verdict.expect(key < keys.size() && keys[key] == shown && fate(key) != Fate::never,
                        [&] { return "a key is shown that never was: " + show(shown); })) {
      return std::nullopt;
    }
    version_of(verdict, key, value);
    return key;
  }

  std::size_t pass(std::size_t next, DatumView shown, DatumView value) {
    const auto found = known(shown, value);
    if (!found) return next;
    const std::size_t key = *found;
    verdict.expect(key >= next, [&] { return "a scan goes back to " + show(shown); });
    pass_until(next, key);
    return key + 1;
  }

  void pass_until(std::size_t next, std::size_t end) {
    for (; next < end; ++next) {
      if (!verdict.expect(fate(next) != Fate::stays,
                          [&] { return "a scan misses " + show(keys[next]); })) {
        return;
      }
    }
  }

  /// Looks up keys whose answer is known.
  void read(unsigned reader) {
    Rng rng(seed + 300 + reader);
    while (disturbers_left.load() > 0 && verdict.ok()) {
      const std::size_t key = rng.below(keys.size());
      const auto value = index.get(keys[key]);
      if (value) version_of(verdict, key, *value);
      if (fate(key) == Fate::comes_and_goes) continue;
      verdict.expect(value.has_value() == (fate(key) == Fate::stays),
                     [&] { return "get() of " + show(keys[key]) + " is wrong"; });
    }
  }

  AnyIndex& index;
  std::vector<Datum> keys;
  std::size_t stay_every;
  std::size_t waves;
  std::uint64_t seed;
  std::atomic<int> disturbers_left{2};
  Verdict verdict;
};

void run_waves(Fixture& fixture, std::size_t key_count, std::size_t stay_every, double waves) {
  auto index = fixture.open();
  Waves test(fixture, index, key_count, stay_every, fixture.count(waves));
  ThreadGroup group;
  group.add(2, [&](unsigned i) { test.disturb(i); });
  group.add(1, [&](unsigned i) { test.read(i); });
  if (index.ordered()) {
    group.add(2, [&](unsigned i) { test.scan(i); });
    group.add(1, [&](unsigned i) { test.scan_limited(i); });
  } else {
    group.add(2, [&](unsigned) { test.visit_all(); });
  }
  group.run(test.verdict);
  std::uint64_t staying = 0;
  for (std::size_t i = 0; i < test.keys.size(); ++i) {
    staying += test.fate(i) == Waves::Fate::stays ? 1 : 0;
  }
  EXPECT_EQ(index.size(), staying);
  EXPECT_TRUE(index.check().ok()) << problems_of(index.check());
}

const Contract many_stay(
    "scans_hold_while_half_of_the_keys_come_and_go",
    [](Fixture& fixture) { run_waves(fixture, 1200, 2, 40); }, kInMemory);

const Contract few_stay(
    "scans_hold_while_leaves_empty_and_vanish",
    [](Fixture& fixture) { run_waves(fixture, 1500, 500, 40); }, kInMemory);

}  // namespace
}  // namespace perdix::test
