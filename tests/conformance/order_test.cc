// Many keys are inserted and erased in every order. Leaves split and merge at both ends and in the
// middle, the index becomes empty and full again, and nothing leaks.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "support/contract.h"

namespace perdix::test {
namespace {

enum class Order { ascending, descending, shuffled };

constexpr std::array kOrders = {Order::ascending, Order::descending, Order::shuffled};

std::vector<Datum> in_order(std::vector<Datum> keys, Order order, Rng& rng) {
  if (order == Order::descending) std::reverse(keys.begin(), keys.end());
  if (order == Order::shuffled) std::shuffle(keys.begin(), keys.end(), rng);
  return keys;
}

/// Inserts all keys in one order and erases them in another, comparing everything now and then.
void come_and_go(Fixture& fixture, const std::vector<Datum>& keys, Order come, Order go) {
  Model model;
  std::optional<AnyIndex> index(fixture.open());
  const auto compare_sometimes = [&](std::string_view doing, std::size_t i) {
    if (i % (keys.size() / 4 + 1) != 0) return;
    ASSERT_EQ("", compare_all(*index, model, keys)) << doing << ", key " << i;
  };
  const auto arriving = in_order(keys, come, fixture.rng());
  for (std::size_t i = 0; i < arriving.size(); ++i) {
    const auto value = fixture.small_value();
    ASSERT_TRUE(index->insert(arriving[i], value)) << show(arriving[i]);
    model.put(arriving[i], value);
    compare_sometimes("inserting", i);
  }
  fixture.reopen(index);
  const auto leaving = in_order(keys, go, fixture.rng());
  for (std::size_t i = 0; i < leaving.size(); ++i) {
    ASSERT_TRUE(index->erase(leaving[i])) << show(leaving[i]);
    model.erase(leaving[i]);
    compare_sometimes("erasing", i);
  }
  ASSERT_EQ("", compare_all(*index, model, keys)) << "empty again";
}

void come_and_go_in_every_order(Fixture& fixture, KeyStyle style) {
  const auto keys = fixture.keys_of(std::max<std::size_t>(100, fixture.count(1500)), style);
  for (const Order come : kOrders) {
    for (const Order go : kOrders) {
      SCOPED_TRACE(std::string("orders ") + std::to_string(static_cast<int>(come)) + ", " +
                   std::to_string(static_cast<int>(go)));
      come_and_go(fixture, keys, come, go);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

const Contract mixed_keys(
    "mixed_keys_come_and_go_in_every_order",
    [](Fixture& fixture) { come_and_go_in_every_order(fixture, KeyStyle::mixed); }, kInMemory);

const Contract dense_keys(
    "dense_keys_come_and_go_in_every_order",
    [](Fixture& fixture) { come_and_go_in_every_order(fixture, KeyStyle::dense); }, kInMemory);

const Contract clustered_keys(
    "clustered_keys_come_and_go_in_every_order",
    [](Fixture& fixture) { come_and_go_in_every_order(fixture, KeyStyle::clustered); }, kInMemory);

// A range is emptied in the middle and filled with other keys: what lay there may not come back.
const Contract emptied_range("an_emptied_range_takes_other_keys", [](Fixture& fixture) {
  const auto keys = fixture.keys_of(4 * (fixture.count(500) / 4 + 20), KeyStyle::dense);
  Model model;
  std::optional<AnyIndex> index(fixture.open());
  const auto put = [&](std::size_t i) {
    const auto value = fixture.small_value();
    index->put(keys[i], value);
    model.put(keys[i], value);
  };
  for (std::size_t i = 0; i < keys.size(); i += 2) put(i);
  for (int round = 0; round < 4; ++round) {
    const std::size_t first = fixture.rng().below(keys.size() / 2);
    for (std::size_t i = first; i < first + keys.size() / 2; ++i) {
      EXPECT_EQ(model.erase(keys[i]), index->erase(keys[i])) << show(keys[i]);
    }
    ASSERT_EQ("", compare_all(*index, model, keys)) << "after a wave of erases";
    fixture.reopen(index);
    for (std::size_t i = first; i < first + keys.size() / 2; i += 3) put(i);
    ASSERT_EQ("", compare_all(*index, model, keys)) << "after filling the gap";
  }
});

// The same cycle again and again takes no more space than before.
const Contract cycles_do_not_grow(
    "a_cycle_of_filling_and_emptying_does_not_grow_the_pool",
    [](Fixture& fixture) {
      // A write-ahead log keeps up to 2 MiB of records before a writer shortens it, and has two
      // segments of 64 KiB ahead in each of its eight stripes. How much of that it has depends on
      // the time that threads in the background get. So where there is a log it takes many cycles
      // to see that each adds something.
      constexpr std::uint64_t kSegment = 64 << 10;
      const bool has_log = fixture.type().buffered();
      const int cycles = has_log ? 100 : 4;
      // What may be kept once: a root, or all that a small log ever has.
      const std::uint64_t slack = has_log ? (std::uint64_t{2} << 20) + 8 * 2 * kSegment : kSegment;
      const auto keys =
          fixture.keys_of(std::max<std::size_t>(500, fixture.count(1000)), KeyStyle::mixed);
      std::vector<std::uint64_t> allocated;
      for (int cycle = 0; cycle < cycles; ++cycle) {
        Model model;
        {
          auto index = fixture.open();
          // Waits until all of the index is back: before, a log keeps 4 MiB of records, and a busy
          // machine may give the thread that brings it back no time in many cycles.
          EXPECT_TRUE(index.check().ok());
          fill(fixture, index, model, keys);
          for (const auto& key : keys) EXPECT_TRUE(index.erase(key)) << show(key);
        }
        fixture.reopen_pool();
        allocated.push_back(fixture.pool().info().allocated);
      }
      EXPECT_LE(allocated.back(), allocated[1] + slack);
    },
    kInMemory);

}  // namespace
}  // namespace perdix::test
