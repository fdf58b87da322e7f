// Random operations against the reference map, with the index or the pool closed and opened again
// at random points, after which everything is compared.
#include <string>
#include <vector>

#include "support/contract.h"
#include "support/workload.h"

namespace perdix::test {
namespace {

void reopen_somehow(Rig& rig, std::optional<AnyIndex>& index) {
  if (rig.rng().once_in(2)) {
    rig.reopen(index);
  } else {
    index.reset();
    index.emplace(rig.open());
  }
}

void run(Rig& rig, const Profile& profile) {
  const std::size_t operations = rig.count(12'000);
  const std::size_t edges = edge_keys(rig.key_kind()).size();
  const auto keys = rig.keys_of(std::max(edges, std::min(profile.keys, operations)), profile.style);
  Workload workload(rig.rng()(), profile, keys.size());
  Model model;
  std::optional<AnyIndex> index(rig.open());
  for (std::size_t i = 0; i < operations; ++i) {
    const Step step = workload.next();
    ASSERT_EQ("", compare_step(*index, model, step, keys[step.key], rig.value()))
        << "profile " << profile.name << ", operation " << i;
    if (!rig.rng().once_in(operations / 6 + 1)) continue;
    reopen_somehow(rig, index);
    ASSERT_EQ("", compare_all(*index, model, keys))
        << "profile " << profile.name << ", opened again after operation " << i;
  }
  ASSERT_EQ("", compare_all(*index, model, keys)) << "profile " << profile.name << ", at the end";
}

void run_profile(Rig& rig, std::string_view name) {
  for (const Profile& profile : profiles()) {
    if (profile.name == name) run(rig, profile);
  }
}

const Contract mixed("random_operations_mixed", [](Rig& rig) { run_profile(rig, "mixed"); });
const Contract up("random_operations_ascending", [](Rig& rig) { run_profile(rig, "ascending"); });
const Contract down("random_operations_descending",
                    [](Rig& rig) { run_profile(rig, "descending"); });
const Contract clusters("random_operations_clustered",
                        [](Rig& rig) { run_profile(rig, "clustered"); });
const Contract hot("random_operations_hot", [](Rig& rig) { run_profile(rig, "hot"); });
const Contract waves("random_operations_waves", [](Rig& rig) { run_profile(rig, "waves"); });

// Several indexes in a pool at once, each with a model of its own.
const Contract side_by_side("random_operations_on_indexes_side_by_side", [](Rig& rig) {
  constexpr std::size_t kIndexes = 3;
  const auto keys = rig.keys(400);
  std::vector<Model> models(kIndexes);
  const std::size_t operations = rig.count(6000);
  Workload workload(rig.rng()(), profiles().front(), keys.size());
  for (int round = 0; round < 3; ++round) {
    std::vector<AnyIndex> indexes;
    for (std::size_t i = 0; i < kIndexes; ++i) {
      indexes.push_back(rig.open("index " + std::to_string(i)));
      ASSERT_EQ("", compare_all(indexes[i], models[i], keys)) << "index " << i;
    }
    for (std::size_t i = 0; i < operations / 3; ++i) {
      const std::size_t which = rig.rng().below(kIndexes);
      const Step step = workload.next();
      ASSERT_EQ(
          "", compare_step(indexes[which], models[which], step, keys[step.key], rig.small_value()))
          << "index " << which << ", round " << round << ", operation " << i;
    }
    indexes.clear();
    rig.reopen_pool();
  }
});

}  // namespace
}  // namespace perdix::test
