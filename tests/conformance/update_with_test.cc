// compare_exchange and update_with: changes that depend on the value.
#include <stdexcept>
#include <string>
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

// The function holds nothing, and what it does to the key makes it run again.
const Contract function_calls("a_function_of_update_with_may_call_anything", [](Fixture& fixture) {
  auto index = fixture.open();
  const auto keys = fixture.keys(30);
  const Datum other = tagged_value(fixture.value_kind(), 77);
  int runs = 0;
  EXPECT_TRUE(index.update_with(keys[0], [&](std::optional<DatumView> before) {
    if (++runs == 1) index.put(keys[0], other);
    index.put(keys[1], other);
    index.visit_all([](DatumView, DatumView) { return true; });
    EXPECT_EQ(before.has_value(), runs == 2) << "what the visitor has put is seen";
    return tagged_value(fixture.value_kind(), 78);
  }));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(index.get(keys[0]), tagged_value(fixture.value_kind(), 78));
  EXPECT_EQ(index.get(keys[1]), other);
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
