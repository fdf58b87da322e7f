// All threads write and erase the same keys. A reader sees a whole value that a thread wrote to
// that key, or none. Sizes are exact when no thread is running.
#include <string>
#include <vector>

#include "concurrency/thread_group.h"

namespace perdix::test {
namespace {

struct Turmoil {
  Turmoil(Fixture& fixture, AnyIndex& the_index, std::size_t key_count, std::size_t steps_each)
      : index(the_index),
        keys(close_keys(fixture, key_count)),
        steps(steps_each),
        seed(fixture.rng()()) {}

  void write(unsigned writer) {
    Rng rng(seed + writer);
    for (std::size_t i = 1; i <= steps && verdict.ok(); ++i) {
      const std::size_t key = rng.below(keys.size());
      const Datum value = marked(index.value_kind(), key, i << 4 | writer);
      switch (rng.below(8)) {
        case 0:
        case 1: index.erase(keys[key]); break;
        case 2: index.insert(keys[key], value); break;
        case 3: index.update(keys[key], value); break;
        default: index.put(keys[key], value); break;
      }
    }
    writers_left.fetch_sub(1);
  }

  void read(unsigned reader) {
    Rng rng(seed + 100 + reader);
    while (writers_left.load() > 0 && verdict.ok()) {
      const std::size_t key = rng.below(keys.size());
      if (const auto value = index.get(keys[key])) version_of(verdict, key, *value);
    }
  }

  void scan(unsigned) {
    while (writers_left.load() > 0 && verdict.ok()) {
      std::size_t next = 0;
      index.scan(Datum::least(index.key_kind()), [&](DatumView shown, DatumView value) {
        const std::size_t key = position(keys, shown);
        const bool known = key < keys.size() && keys[key] == shown;
        verdict.expect(known && key >= next, [&] { return "a scan shows " + show(shown); });
        if (known) version_of(verdict, key, value);
        next = key + 1;
        return verdict.ok();
      });
    }
  }

  AnyIndex& index;
  std::vector<Datum> keys;
  std::size_t steps;
  std::uint64_t seed;
  std::atomic<int> writers_left{3};
  Verdict verdict;
};

void run_turmoil(Fixture& fixture, std::size_t key_count) {
  std::optional<AnyIndex> index(fixture.open());
  std::vector<Datum> keys;
  {
    Turmoil test(fixture, *index, key_count, fixture.count(8000));
    ThreadGroup group;
    group.add(3, [&](unsigned i) { test.write(i); });
    group.add(2, [&](unsigned i) { test.read(i); });
    if (index->ordered()) group.add(1, [&](unsigned i) { test.scan(i); });
    group.run(test.verdict);
    keys = test.keys;
  }
  Model model;  // what is there at rest, one lookup after the other
  for (const auto& key : keys) {
    if (const auto value = index->get(key)) model.put(key, *value);
  }
  EXPECT_EQ("", compare_all(*index, model, keys)) << "at rest";
  fixture.reopen(index);
  EXPECT_EQ("", compare_all(*index, model, keys)) << "after reopening";
}

const Contract few_keys(
    "values_of_a_few_keys_are_never_torn", [](Fixture& fixture) { run_turmoil(fixture, 8); },
    kInMemory);

const Contract some_keys(
    "values_of_some_hundred_keys_are_never_torn",
    [](Fixture& fixture) { run_turmoil(fixture, 400); }, kInMemory);

}  // namespace
}  // namespace perdix::test
