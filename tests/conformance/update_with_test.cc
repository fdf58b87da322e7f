// compare_exchange and update_with: changes that depend on the value.
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/contract.h"

namespace perdix::test {
namespace {

const Contract exchanges("compare_exchange_changes_what_is_expected", [](Fixture& fixture) {
  auto index = fixture.open();
  const auto keys = fixture.keys(60);
  Model model;
  for (const auto& key : keys) {
    const Datum first = tagged_value(fixture.value_kind(), 1);
    const Datum second = tagged_value(fixture.value_kind(), 2);
    EXPECT_TRUE(index.compare_exchange(key, std::nullopt, std::nullopt)) << "absent, as expected";
    EXPECT_FALSE(index.compare_exchange(key, first, second));
    EXPECT_FALSE(index.compare_exchange(key, first, std::nullopt));
    EXPECT_FALSE(index.contains(key)) << show(key);
    EXPECT_TRUE(index.compare_exchange(key, std::nullopt, first));
    EXPECT_EQ(index.get(key), first);
    EXPECT_FALSE(index.compare_exchange(key, std::nullopt, second)) << "it is there";
    EXPECT_FALSE(index.compare_exchange(key, std::nullopt, std::nullopt)) << "it is there";
    EXPECT_FALSE(index.compare_exchange(key, second, first)) << "it has another value";
    EXPECT_FALSE(index.compare_exchange(key, second, std::nullopt)) << "it has another value";
    EXPECT_EQ(index.get(key), first);
    EXPECT_TRUE(index.compare_exchange(key, first, first)) << "the same value";
    EXPECT_TRUE(index.compare_exchange(key, first, second));
    EXPECT_EQ(index.get(key), second);
    EXPECT_EQ(index.size(), model.size() + 1);
    model.put(key, second);
  }
  EXPECT_EQ("", compare_all(index, model, keys));
  for (const auto& key : keys) {
    EXPECT_TRUE(index.compare_exchange(key, *model.get(key), std::nullopt));
    model.erase(key);
  }
  EXPECT_EQ("", compare_all(index, model, keys));
});

// Values that differ in a byte at either end, in their length, or not at all.
const Contract exchanged_values(
    "compare_exchange_compares_whole_values", bytes_values, [](Fixture& fixture) {
      auto index = fixture.open();
      const auto key = fixture.keys(30).front();
      for (const std::size_t size : {0, 1, 8, 300, 70'000}) {
        const std::string value = bytes_of(size, size);
        std::vector<std::string> others = {value + "x", value + std::string(1, '\0')};
        if (size > 0) {
          others.push_back(value.substr(1));
          others.push_back(value.substr(0, size - 1));
          for (const std::size_t at : {std::size_t{0}, size - 1}) {
            others.push_back(value);
            others.back()[at] = static_cast<char>(others.back()[at] ^ 1);
          }
        }
        index.put(key, value);
        for (const std::string& other : others) {
          EXPECT_FALSE(index.compare_exchange(key, other, std::string("wrong")));
          EXPECT_FALSE(index.compare_exchange(key, other, std::nullopt));
        }
        EXPECT_EQ(index.get(key), Datum(value));
        EXPECT_TRUE(index.compare_exchange(key, std::string(value), std::string("right")));
        EXPECT_EQ(index.get(key), Datum(std::string("right")));
      }
    });

const Contract functions("update_with_stores_erases_or_keeps", [](Fixture& fixture) {
  auto index = fixture.open();
  const Datum one = tagged_value(fixture.value_kind(), 1);
  const Datum two = tagged_value(fixture.value_kind(), 2);
  for (const auto& key : fixture.keys(40)) {
    EXPECT_FALSE(index.update_with(key, [](auto before) {
      EXPECT_FALSE(before.has_value());
      return std::nullopt;  // there is nothing to erase
    }));
    EXPECT_FALSE(index.contains(key));
    EXPECT_TRUE(index.update_with(key, [&](auto) { return one; }));
    EXPECT_EQ(index.get(key), one);
    EXPECT_TRUE(index.update_with(key, [&](auto before) {
      EXPECT_TRUE(before.has_value() && *before == DatumView(one));
      return two;
    }));
    EXPECT_EQ(index.get(key), two);
    EXPECT_THROW(
        index.update_with(key, [](auto) -> std::optional<Datum> { throw std::range_error("no"); }),
        std::range_error);
    EXPECT_EQ(index.get(key), two) << "a function that throws changes nothing";
    EXPECT_TRUE(index.update_with(key, [](auto) { return std::nullopt; }));
    EXPECT_FALSE(index.contains(key));
  }
});

// The function holds nothing. If another thread changes the key meanwhile, it runs again.
const Contract function_calls("a_function_of_update_with_may_call_anything", [](Fixture& fixture) {
  auto index = fixture.open();
  const auto keys = fixture.keys(30);
  const Datum other = tagged_value(fixture.value_kind(), 77);
  int runs = 0;
  EXPECT_TRUE(index.update_with(keys[0], [&](std::optional<DatumView> before) {
    if (++runs == 1) std::thread([&] { index.put(keys[0], other); }).join();
    EXPECT_EQ(index.contains(keys[0]), true);
    index.put(keys[1], other);
    index.visit_all([](DatumView, DatumView) { return true; });
    EXPECT_EQ(before.has_value(), runs == 2) << "what the other thread has put is seen";
    return tagged_value(fixture.value_kind(), 78);
  }));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(index.get(keys[0]), tagged_value(fixture.value_kind(), 78));
  EXPECT_EQ(index.get(keys[1]), other);
});

/// All calls that change a key are refused: each with what makes it succeed, and once with what
/// changes nothing if the key is absent.
void expect_unchangeable(AnyIndex& index, const Datum& key, const Datum& value) {
  const auto same = [&](auto) { return value; };
  const std::vector<std::function<void()>> calls = {
      [&] { index.put(key, value); },
      [&] { index.insert(key, value); },
      [&] { index.insert_ahead(key, value); },
      [&] { index.update(key, value); },
      [&] { index.erase(key); },
      [&] { index.compare_exchange(key, std::nullopt, value); },
      [&] { index.compare_exchange(key, value, std::nullopt); },
      [&] { index.update_with(key, same); },
      [&] { index.update_with(key, [](auto) { return std::nullopt; }); },
  };
  for (std::size_t i = 0; i < calls.size(); ++i)
    EXPECT_EQ(error_of(calls[i]), Errc::invalid_argument) << "call " << i;
}

/// In a function for another key, both keys are taken, and others are not.
void expect_unchangeable_within(AnyIndex& index, const std::vector<Datum>& keys, const Datum& one,
                                const Datum& two) {
  EXPECT_TRUE(index.update_with(keys[1], [&](auto) {
    EXPECT_TRUE(index.update_with(keys[0], [&](auto) {
      expect_unchangeable(index, keys[0], one);
      expect_unchangeable(index, keys[1], one);
      index.put(keys[2], two);
      return one;
    }));
    expect_unchangeable(index, keys[1], one);
    EXPECT_TRUE(index.compare_exchange(keys[0], one, one)) << "its function has ended";
    return two;
  }));
  EXPECT_EQ(index.get(keys[0]), one);
  EXPECT_EQ(index.get(keys[1]), two);
  EXPECT_EQ(index.get(keys[2]), two);
}

// Before, each run found another value than the one before, and the call never ended.
const Contract nested("a_function_of_update_with_can_not_change_its_key", [](Fixture& fixture) {
  auto index = fixture.open();
  const auto keys = fixture.keys(30);
  const Datum one = tagged_value(fixture.value_kind(), 1);
  const Datum two = tagged_value(fixture.value_kind(), 2);
  for (const bool there : {false, true}) {
    int runs = 0;
    EXPECT_TRUE(index.update_with(keys[0], [&](std::optional<DatumView> before) {
      ++runs;
      EXPECT_EQ(before.has_value(), there);
      expect_unchangeable(index, keys[0], one);
      EXPECT_EQ(index.get(keys[0]), there ? std::optional(one) : std::nullopt);
      return one;
    }));
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(index.get(keys[0]), one);
  }
  expect_unchangeable_within(index, keys, one, two);
  EXPECT_EQ(error_of([&] {
              index.update_with(keys[0], [&](auto) {
                index.update_with(keys[0], [&](auto) { return two; });
                return one;
              });
            }),
            Errc::invalid_argument)
      << "an error that the function lets through";
  EXPECT_EQ(index.get(keys[0]), one);
  index.put(keys[0], two);
  EXPECT_EQ(index.get(keys[0]), two) << "it may be changed again";
});

// A writer that is always faster: the function itself says when it has tried enough.
const Contract giving_up("a_function_of_update_with_bounds_its_runs", [](Fixture& fixture) {
  auto index = fixture.open();
  const auto key = fixture.keys(30).front();
  std::uint64_t runs = 0;
  const auto is_overtaken = [&](auto) -> std::optional<Datum> {
    const Datum newer = tagged_value(fixture.value_kind(), ++runs);
    std::thread([&] { index.put(key, newer); }).join();
    if (runs == 5) throw std::range_error("enough");
    return tagged_value(fixture.value_kind(), 77);
  };
  EXPECT_THROW(index.update_with(key, is_overtaken), std::range_error);
  EXPECT_EQ(runs, 5U);
  EXPECT_EQ(index.get(key), tagged_value(fixture.value_kind(), 5)) << "that of the other thread";
});

const Contract exchange_limits(
    "compare_exchange_has_the_limits_of_put", bytes_values, [](Fixture& fixture) {
      auto index = fixture.open();
      if (fixture.key_kind() == Kind::u64) return;
      const Datum long_key = std::string(kMaxKeySize + 1, 'k');
      EXPECT_EQ(error_of([&] { index.compare_exchange(long_key, std::nullopt, std::string("v")); }),
                Errc::too_large);
      EXPECT_EQ(index.size(), 0U);
    });

}  // namespace
}  // namespace perdix::test
