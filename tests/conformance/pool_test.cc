// Indexes in a pool: names, kinds, opening once, dropping, and lifetimes of pools and indexes.
#include <algorithm>
#include <string>
#include <vector>

#include "pool/pool_core.h"
#include "support/contract.h"

namespace perdix::test {
namespace {

const Contract wrong_kind("an_index_has_its_kinds_for_life", [](Fixture& fixture) {
  fixture.open().put(fixture.keys(30).front(), fixture.small_value());
  for (const IndexType& other : index_types()) {
    if (other.engine != fixture.type().engine) continue;
    const bool same = other.kinds() == fixture.type().kinds();
    const auto error = error_of([&] { fixture.open_as(other); });
    EXPECT_EQ(error, same ? std::nullopt : std::optional(Errc::wrong_kind)) << other.kinds();
  }
  EXPECT_EQ(fixture.open().size(), 1U);
});

const Contract wrong_engine("an_index_has_its_engine_for_life", [](Fixture& fixture) {
  fixture.open().put(fixture.keys(30).front(), fixture.small_value());
  for (const IndexType& other : index_types()) {
    if (other.kinds() != fixture.type().kinds()) continue;
    const bool same = other.engine == fixture.type().engine;
    const auto error = error_of([&] { fixture.open_as(other); });
    EXPECT_EQ(error, same ? std::nullopt : std::optional(Errc::wrong_engine)) << other.engine;
  }
  EXPECT_EQ(fixture.open().size(), 1U);
});

const Contract open_once("a_name_is_open_at_most_once", [](Fixture& fixture) {
  {
    auto index = fixture.open();
    EXPECT_EQ(error_of([&] { fixture.open(); }), Errc::in_use);
    index.put(fixture.keys(30).front(), fixture.small_value());
    EXPECT_EQ(index.size(), 1U);
  }
  EXPECT_EQ(fixture.open().size(), 1U);
});

const Contract pool_open_once("a_pool_is_open_at_most_once", [](Fixture& fixture) {
  EXPECT_EQ(error_of([&] { Pool::open(fixture.path(), fixture.options()); }), Errc::in_use);
  EXPECT_EQ(error_of([&] { Pool::create(fixture.path(), fixture.options()); }),
            Errc::already_exists);
});

const Contract names("names_have_limits", [](Fixture& fixture) {
  EXPECT_EQ(error_of([&] { fixture.open(""); }), Errc::invalid_argument);
  const auto too_long = error_of([&] { fixture.open(std::string(kMaxNameSize + 1, 'n')); });
  EXPECT_TRUE(too_long == Errc::too_large || too_long == Errc::invalid_argument);
  EXPECT_TRUE(fixture.pool().indexes().empty()) << "a bad name left something behind";
  const std::string longest(kMaxNameSize, 'n');
  const auto key = fixture.keys(30).front();
  fixture.open(longest).put(key, fixture.small_value());
  EXPECT_TRUE(fixture.open(longest).contains(key));
  fixture.open("Orders of 2024, \xc3\xa4-z").put(key, fixture.small_value());
  EXPECT_EQ(fixture.pool().indexes().size(), 2U);
});

const Contract directory("the_pool_lists_its_indexes", [](Fixture& fixture) {
  std::vector<std::string> expected;
  for (int i = 0; i < 20; ++i) {
    expected.push_back("index " + std::to_string(i));
    fixture.open(expected.back());
  }
  std::sort(expected.begin(), expected.end());
  for (int round = 0; round < 2; ++round) {
    std::vector<std::string> found;
    for (const IndexInfo& info : fixture.pool().indexes()) {
      found.push_back(info.name);
      EXPECT_EQ(info.engine, fixture.info().engine);
      EXPECT_EQ(info.key_kind, fixture.info().key_kind);
      EXPECT_EQ(info.value_kind, fixture.info().value_kind);
    }
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected);
    fixture.reopen_pool();
  }
});

const Contract drop("dropping_an_index_frees_all_of_it", [](Fixture& fixture) {
  const auto keys = fixture.keys(400);
  Model kept;
  Model dropped;
  {
    auto index = fixture.open("kept");
    fill(fixture, index, kept, keys);
  }
  fixture.expect_sound("before a drop");  // and gives back what it does not need
  const std::uint64_t before = fixture.pool().info().allocated;
  for (int round = 0; round < 3; ++round) {
    {
      auto index = fixture.open("dropped");
      EXPECT_EQ(index.size(), 0U) << "a dropped index came back";
      fill(fixture, index, dropped, keys);
      EXPECT_EQ(error_of([&] { fixture.pool().drop("dropped"); }), Errc::in_use);
      EXPECT_EQ("", compare_summary(index, dropped));
    }
    fixture.pool().drop("dropped");
    fixture.expect_sound("after a drop");
    EXPECT_EQ(fixture.pool().indexes().size(), 1U);
  }
  EXPECT_EQ(error_of([&] { fixture.pool().drop("dropped"); }), Errc::not_found);
  fixture.reopen_pool();
  EXPECT_EQ(fixture.pool().info().allocated, before);
  EXPECT_EQ("", compare_all(fixture.open("kept"), kept, keys));
});

const Contract owned("an_index_counts_just_the_blocks_that_are_allocated", [](Fixture& fixture) {
  // What a plug-in of Tips has given back stays allocated until its next reclamation.
  const std::string engine(fixture.type().engine);
  if (engine.starts_with("tips:")) return;
  Model model;
  auto index = fixture.open();
  fill(fixture, index, model, fixture.keys(400));
  const CheckReport report = index.check();
  EXPECT_TRUE(report.ok());
  std::uint64_t allocated = 0;
  fixture.pool().core()->allocator().for_each_allocated(
      [&](detail::pm::Offset, std::uint64_t) { ++allocated; });
  EXPECT_EQ(report.blocks, allocated);
});

const Contract name_again("a_dropped_name_takes_other_kinds", [](Fixture& fixture) {
  fixture.open().put(fixture.keys(30).front(), fixture.small_value());
  for (const IndexType& other : index_types()) {
    if (other.engine != fixture.type().engine) continue;
    fixture.pool().drop("index");
    AnyIndex index = fixture.open_as(other);
    EXPECT_EQ(index.size(), 0U);
    const Datum key = Datum::least(other.key_kind);
    const Datum value = Datum::least(other.value_kind);
    index.put(key, value);
    EXPECT_EQ(index.get(key), value);
  }
});

const Contract close("a_pool_closes_when_no_index_is_open", [](Fixture& fixture) {
  const auto key = fixture.keys(30).front();
  {
    auto index = fixture.open();
    EXPECT_EQ(error_of([&] { fixture.pool().close(); }), Errc::in_use);
    index.put(key, fixture.small_value());  // the pool goes on as if nothing had happened
    EXPECT_TRUE(index.contains(key));
  }
  Pool copy = fixture.pool();
  fixture.close_pool();
  EXPECT_EQ(error_of([&] { copy.info(); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { copy.drop("index"); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { copy.indexes(); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { copy.huge_pages(); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { copy.check(); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { Index::open(copy, "index"); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { copy.close(); }), Errc::invalid_argument);
  fixture.open_pool();
  EXPECT_TRUE(fixture.open().contains(key));
});

// Several indexes that are written in turn do not see each other's keys.
const Contract independent("indexes_of_a_pool_are_independent", [](Fixture& fixture) {
  const auto keys = fixture.keys(100);
  std::vector<AnyIndex> indexes;
  std::vector<Model> models(5);
  for (std::size_t i = 0; i < models.size(); ++i) {
    indexes.push_back(fixture.open("index " + std::to_string(i)));
  }
  for (const auto& key : keys) {
    const std::size_t i = fixture.rng().below(models.size());
    const auto value = fixture.small_value();
    indexes[i].put(key, value);
    models[i].put(key, value);
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    EXPECT_EQ("", compare_all(indexes[i], models[i], keys)) << "index " << i;
  }
});

const Contract outlives("an_index_keeps_its_pool_open", [](Fixture& fixture) {
  const auto keys = fixture.keys(40);
  Model model;
  fixture.close_pool();
  {
    std::optional<Pool> pool(Pool::open(fixture.path(), fixture.options()));
    AnyIndex index = fixture.type().open(*pool, "index");
    pool.reset();
    fill(fixture, index, model, keys);
    EXPECT_EQ("", compare_all(index, model, keys));
    EXPECT_EQ(error_of([&] { Pool::open(fixture.path(), fixture.options()); }), Errc::in_use);
  }
  fixture.open_pool();  // the last index had closed it
  EXPECT_EQ("", compare_all(fixture.open(), model, keys));
});

const Contract moves("a_moved_index_is_the_same_index", [](Fixture& fixture) {
  const auto keys = fixture.keys(60);
  Model model;
  auto first = fixture.open("first");
  fill(fixture, first, model, keys);
  AnyIndex second(std::move(first));
  EXPECT_EQ("", compare_all(second, model, keys)) << "after move construction";
  auto third = fixture.open("third");
  third.put(keys.front(), fixture.small_value());
  third = std::move(second);
  EXPECT_EQ("", compare_all(third, model, keys)) << "after move assignment";
  EXPECT_EQ(fixture.open("third").size(), 1U) << "what was assigned over had been closed";
  second = fixture.open("second");  // a moved-from object takes a new index
  EXPECT_EQ(second.size(), 0U);
  second.put(keys.back(), fixture.small_value());
  EXPECT_EQ("", compare_all(third, model, keys));
});

const Contract pools_assign("an_index_moves_between_pools", [](Fixture& fixture) {
  const auto keys = fixture.keys(40);
  Model model;
  auto index = fixture.open();
  fill(fixture, index, model, keys);
  const auto other_path = fixture.path().string() + ".other";
  {
    Pool other = Pool::create(other_path, fixture.options());
    AnyIndex elsewhere = fixture.type().open(other, "index");
    elsewhere.put(keys.front(), fixture.small_value());
    std::swap(index, elsewhere);
    EXPECT_EQ("", compare_all(elsewhere, model, keys));
    EXPECT_EQ(index.size(), 1U);
    std::swap(index, elsewhere);
  }
  EXPECT_EQ("", compare_all(index, model, keys));
  Pool other = Pool::open(other_path, fixture.options());
  EXPECT_TRUE(other.info().was_clean);
  EXPECT_TRUE(other.check().ok());
});

}  // namespace
}  // namespace perdix::test
