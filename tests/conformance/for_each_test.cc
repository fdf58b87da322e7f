// for_each: all pairs of an index, with or without order.
#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/contract.h"

namespace perdix::test {
namespace {

const Contract shows_all("for_each_shows_every_pair_once", [](Fixture& fixture) {
  std::optional<AnyIndex> index(fixture.open());
  EXPECT_EQ("", compare_pairs(*index, {})) << "when empty";
  Model model;
  fill(fixture, *index, model, fixture.keys(3000));
  EXPECT_EQ("", compare_pairs(*index, model));
  fixture.reopen(index);
  EXPECT_EQ("", compare_pairs(*index, model)) << "after reopening";
});

const Contract stops("for_each_stops_when_the_visitor_does", [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  fill(fixture, index, model, fixture.keys(300));
  for (const std::size_t most : {std::size_t{1}, std::size_t{2}, model.size() - 1}) {
    std::size_t shown = 0;
    index.for_each([&](DatumView, DatumView) { return ++shown < most; });
    EXPECT_EQ(shown, most);
  }
});

const Contract throws("what_a_visitor_of_for_each_throws_leaves_it", [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  fill(fixture, index, model, fixture.keys(300));
  std::size_t shown = 0;
  EXPECT_THROW(index.for_each([&](DatumView, DatumView) -> bool {
    if (++shown == 17) throw std::range_error("seen enough");
    return true;
  }),
               std::range_error);
  EXPECT_EQ(shown, 17U);
  EXPECT_EQ("", compare_pairs(index, model)) << "it works on";
});

// Its thread holds nothing of the index, so it may do everything.
const Contract writes("a_visitor_of_for_each_may_write", [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  const auto keys = fixture.keys(600);
  fill(fixture, index, model, keys);
  const Model before = model;
  std::set<Datum> shown;
  index.for_each([&](DatumView key, DatumView value) {
    EXPECT_TRUE(shown.insert(key.copy()).second) << show(key) << " is shown twice";
    EXPECT_TRUE(before.contains(key)) << show(key) << " was not there";
    const Datum owned = key.copy();
    if (shown.size() % 3 == 0) {
      EXPECT_EQ(index.erase(owned), model.erase(owned));
    } else {
      EXPECT_EQ(index.get(owned), value);
      const Datum other = fixture.small_value();
      EXPECT_TRUE(index.update(owned, other));
      model.update(owned, other);
    }
    return true;
  });
  EXPECT_EQ(shown.size(), before.size()) << "each was there until it was shown";
  EXPECT_EQ("", compare_all(index, model, keys));
});

// Leaves and buckets split between two parts that are shown of one: values are long, so parts are
// small.
const Contract grows("a_visitor_of_for_each_may_make_the_index_grow", [](Fixture& fixture) {
  constexpr std::size_t kThere = 400, kPerVisit = 100;
  auto index = fixture.open();
  std::vector<Datum> keys = fixture.keys_of(1500, KeyStyle::mixed);
  std::shuffle(keys.begin(), keys.end(), fixture.rng());
  const Datum value = fixture.value_kind() == Kind::u64 ? Datum(7) : Datum(std::string(3000, 'v'));
  std::set<Datum> left;
  for (std::size_t i = 0; i < kThere; ++i) {
    index.put(keys[i], value);
    left.insert(keys[i]);
  }
  std::set<Datum> shown;
  std::size_t next = kThere;
  index.for_each([&](DatumView key, DatumView) {
    EXPECT_TRUE(shown.insert(key.copy()).second) << show(key) << " is shown twice";
    left.erase(key.copy());
    for (std::size_t i = 0; i < kPerVisit && next < keys.size(); ++i)
      index.put(keys[next++], value);
    return true;
  });
  EXPECT_TRUE(left.empty()) << left.size() << " are not shown that were there all the time";
  EXPECT_EQ(index.size(), keys.size());
});

const Contract nested("visitors_of_for_each_nest", [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  fill(fixture, index, model, fixture.keys(40));
  std::size_t pairs = 0;
  index.for_each([&](DatumView, DatumView) {
    index.for_each([&](DatumView, DatumView) { return ++pairs, true; });
    return true;
  });
  EXPECT_EQ(pairs, model.size() * model.size());
});

}  // namespace
}  // namespace perdix::test
