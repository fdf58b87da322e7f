// Random operations against the reference map, with the index or the pool closed and opened again
// at random points, after which everything is compared. Where there are write buffers, each opening
// has other options.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "index/common/engine_traits.h"
#include "index/elimda/options.h"
#include "index/test_options.h"
#include "pool/pool_core.h"
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

/// Pairs of ElimDa come by way of media units, or straight. Where there are write buffers: any
/// technique; none, few, or one for each leaf or what it has in place of these.
IndexOptions any_options(Fixture& fixture) {
  using detail::index::set_if_there;
  Rng& rng = fixture.rng();
  const std::string& engine = fixture.type().engine;
  IndexOptions options = detail::index::options_or_defaults(fixture.type().options);
  options.resume_in_background = rng.once_in(2);
  set_if_there(options, engine, "media_units", static_cast<MediaUnits>(rng.below(3)));
  if (!fixture.type().buffered()) return options;
  const std::array budgets = {std::uint64_t{0}, std::uint64_t{3000}, kUnlimited,
                              detail::index::dram_budget_of(options)};
  set_if_there(options, engine, "dram_budget", budgets[rng.below(budgets.size())]);
  set_if_there(options, engine, "technique", static_cast<Technique>(rng.below(4)));
  return options;
}

/// First of few keys, whose duplicates of insert_ahead() are on their way through what has layers,
/// then of many. Grows and shrinks, so that leaves split and join. Not all openings are looked at
/// before they are written to.
const Contract options_change(
    "random_operations_with_other_options_at_each_opening", [](Fixture& fixture) {
      const std::size_t operations = std::max<std::size_t>(6000, fixture.count(12'000));
      const auto keys = fixture.keys_of(600, KeyStyle::dense);
      Model model;
      std::optional<AnyIndex> index;
      for (std::size_t i = 0; i < operations; ++i) {
        if (i % (operations / 80) == 0) {
          fixture.pool().core()->reclaim_space();
          index.reset();
          if (fixture.rng().once_in(2)) fixture.reopen_pool();
          index.emplace(fixture.type().open_with(fixture.pool(), "index", any_options(fixture)));
          if (fixture.rng().once_in(2)) {
            ASSERT_EQ("", compare_all(*index, model, keys)) << "operation " << i;
          }
        }
        const Datum& key = keys[fixture.rng().below(i < operations / 2 ? 40 : keys.size())];
        const bool grows = i / (operations / 4 + 1) % 2 == 0;
        constexpr std::array kAll = {Op::put, Op::update, Op::insert, Op::erase};
        const Op op = fixture.rng().once_in(2) ? kAll[fixture.rng().below(kAll.size())]
                      : grows                  ? Op::insert
                                               : Op::erase;
        const Datum value = fixture.small_value();
        if (op == Op::insert && fixture.rng().once_in(2)) {
          index->insert_ahead(key, value);
          model.insert(key, value);
        } else {
          ASSERT_EQ("", compare_step(*index, model, {op, 0, 0}, key, value)) << "operation " << i;
        }
        const Datum& other = keys[fixture.rng().below(keys.size())];
        ASSERT_EQ(index->get(other), model.get(other)) << show(other) << ", operation " << i;
        if (index->ordered()) {
          ASSERT_EQ(index->floor(other), model.floor(other)) << show(other) << ", operation " << i;
          ASSERT_EQ("", compare_scan(*index, model, other, i % 70)) << "operation " << i;
        }
      }
      ASSERT_EQ("", compare_all(*index, model, keys)) << "at the end";
    });

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
