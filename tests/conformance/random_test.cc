// Random operations against the reference map, with the index or the pool closed and opened again
// at random points, after which everything is compared.
#include <string>
#include <vector>

#include "support/contract.h"
#include "support/workload.h"

namespace perdix::test {
namespace {

void reopen_somehow(Fixture& fixture, std::optional<AnyIndex>& index) {
  if (fixture.rng().once_in(2)) {
    fixture.reopen(index);
  } else {
    index.reset();
    index.emplace(fixture.open());
  }
}

void run(Fixture& fixture, const Profile& profile) {
  const std::size_t operations = fixture.count(12'000);
  const std::size_t edges = edge_keys(fixture.key_kind()).size();
  const auto keys =
      fixture.keys_of(std::max(edges, std::min(profile.keys, operations)), profile.style);
  Workload workload(fixture.rng()(), profile, keys.size());
  Model model;
  std::optional<AnyIndex> index(fixture.open());
  for (std::size_t i = 0; i < operations; ++i) {
    const Step step = workload.next();
    ASSERT_EQ("", compare_step(*index, model, step, keys[step.key], fixture.value()))
        << "profile " << profile.name << ", operation " << i;
    if (!fixture.rng().once_in(operations / 6 + 1)) continue;
    reopen_somehow(fixture, index);
    ASSERT_EQ("", compare_all(*index, model, keys))
        << "profile " << profile.name << ", opened again after operation " << i;
  }
  ASSERT_EQ("", compare_all(*index, model, keys)) << "profile " << profile.name << ", at the end";
}

void run_profile(Fixture& fixture, std::string_view name) {
  for (const Profile& profile : profiles()) {
    if (profile.name == name) run(fixture, profile);
  }
}

const Contract mixed("random_operations_mixed",
                     [](Fixture& fixture) { run_profile(fixture, "mixed"); });
const Contract up("random_operations_ascending",
                  [](Fixture& fixture) { run_profile(fixture, "ascending"); });
const Contract down("random_operations_descending",
                    [](Fixture& fixture) { run_profile(fixture, "descending"); });
const Contract clusters("random_operations_clustered",
                        [](Fixture& fixture) { run_profile(fixture, "clustered"); });
const Contract hot("random_operations_hot", [](Fixture& fixture) { run_profile(fixture, "hot"); });
const Contract waves("random_operations_waves",
                     [](Fixture& fixture) { run_profile(fixture, "waves"); });

// Several indexes in one pool, each with a separate model.
const Contract side_by_side("random_operations_on_indexes_side_by_side", [](Fixture& fixture) {
  constexpr std::size_t kIndexes = 3;
  const auto keys = fixture.keys(400);
  std::vector<Model> models(kIndexes);
  const std::size_t operations = fixture.count(6000);
  Workload workload(fixture.rng()(), profiles().front(), keys.size());
  for (int round = 0; round < 3; ++round) {
    std::vector<AnyIndex> indexes;
    for (std::size_t i = 0; i < kIndexes; ++i) {
      indexes.push_back(fixture.open("index " + std::to_string(i)));
      ASSERT_EQ("", compare_all(indexes[i], models[i], keys)) << "index " << i;
    }
    for (std::size_t i = 0; i < operations / 3; ++i) {
      const std::size_t which = fixture.rng().below(kIndexes);
      const Step step = workload.next();
      ASSERT_EQ("", compare_step(indexes[which], models[which], step, keys[step.key],
                                 fixture.small_value()))
          << "index " << which << ", round " << round << ", operation " << i;
    }
    indexes.clear();
    fixture.reopen_pool();
  }
});

}  // namespace
}  // namespace perdix::test
