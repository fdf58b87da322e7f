// insert_ahead: an insert that does not report whether the key was absent. For engines without that
// call the suite uses insert().
#include <optional>
#include <string>
#include <vector>

#include "support/contract.h"

namespace perdix::test {
namespace {

const Contract first_wins("insert_ahead_keeps_the_first_value", [](Fixture& fixture) {
  std::optional<AnyIndex> index(fixture.open());
  const auto keys = fixture.keys(40);
  Model model;
  for (std::uint64_t round = 0; round < 12; ++round) {
    for (const auto& key : keys) {
      const Datum value = tagged_value(fixture.value_kind(), 1 + round);
      index->insert_ahead(key, value);
      model.insert(key, value);
      ASSERT_EQ(index->get(key), model.get(key)) << show(key);
    }
    if (round % 4 == 3) fixture.reopen(index);
    ASSERT_EQ("", compare_all(*index, model, keys)) << "round " << round;
  }
});

// Duplicates may lie in all layers, whose oldest one is the only one that counts.
const Contract changes(
    "what_insert_ahead_repeats_is_changed_and_erased_once", [](Fixture& fixture) {
      std::optional<AnyIndex> index(fixture.open());
      const auto keys = fixture.keys(120);
      Model model;
      const std::size_t operations = fixture.count(12'000);
      for (std::size_t i = 0; i < operations; ++i) {
        const auto& key = keys[fixture.rng().below(keys.size())];
        const Datum value = fixture.value();
        switch (fixture.rng().below(8)) {
          case 0: ASSERT_EQ(index->erase(key), model.erase(key)) << show(key); break;
          case 1:
            ASSERT_EQ(index->update(key, value), model.update(key, value)) << show(key);
            break;
          case 2:
            ASSERT_EQ(index->insert(key, value), model.insert(key, value)) << show(key);
            break;
          default: index->insert_ahead(key, value); model.insert(key, value);
        }
        ASSERT_EQ(index->get(key), model.get(key)) << show(key) << ", operation " << i;
        if (!fixture.rng().once_in(operations / 5 + 1)) continue;
        fixture.reopen(index);
        ASSERT_EQ("", compare_all(*index, model, keys)) << "after operation " << i;
      }
      ASSERT_EQ("", compare_all(*index, model, keys));
    });

}  // namespace
}  // namespace perdix::test
