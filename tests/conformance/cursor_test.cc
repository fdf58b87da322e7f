// Calls of ordered indexes other than scans: neighbours, cursors, ranges.
#include <algorithm>
#include <string>
#include <vector>

#include "epoch/reclaimer.h"
#include "pool/pool_core.h"
#include "support/contract.h"

namespace perdix::test {
namespace {

void expect_neighbours(const AnyIndex& index, const Model& model, const Datum& key) {
  EXPECT_EQ(index.lower_bound(key), model.lower_bound(key)) << show(key);
  EXPECT_EQ(index.floor(key), model.floor(key)) << show(key);
  EXPECT_EQ(index.after(key), model.after(key)) << show(key);
  EXPECT_EQ(index.before(key), model.before(key)) << show(key);
}

const Contract neighbours("neighbours_are_those_of_the_model", ordered, [](Fixture& fixture) {
  std::optional<AnyIndex> index(fixture.open());
  auto keys = fixture.keys(1500);
  Model model;
  for (const Datum& key : edge_keys(fixture.key_kind())) expect_neighbours(*index, model, key);
  EXPECT_EQ(index->first(), std::nullopt);
  EXPECT_EQ(index->last(), std::nullopt);
  for (std::size_t i = 0; i < keys.size(); i += 2) {  // the others lie in gaps
    const Datum value = fixture.small_value();
    index->put(keys[i], value);
    model.put(keys[i], value);
  }
  for (int round = 0; round < 2; ++round) {
    for (const Datum& key : keys) expect_neighbours(*index, model, key);
    for (const Datum& key : edge_keys(fixture.key_kind())) expect_neighbours(*index, model, key);
    EXPECT_EQ(index->first(), model.first());
    EXPECT_EQ(index->last(), model.last());
    fixture.reopen(index);  // then the first call meets leaves that are not back yet
  }
});

// Leaves that have become empty lie between a key and its neighbours.
const Contract far_apart("neighbours_are_found_across_empty_leaves", ordered, [](Fixture& fixture) {
  std::optional<AnyIndex> index(fixture.open());
  const auto keys = fixture.keys_of(1200, KeyStyle::mixed);
  Model model;
  fill(fixture, *index, model, keys);
  const auto stays = [&](std::size_t i) { return i == 7 || i == keys.size() / 2; };
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (stays(i)) continue;
    index->erase(keys[i]);
    model.erase(keys[i]);
  }
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < keys.size(); i += 13) expect_neighbours(*index, model, keys[i]);
    EXPECT_EQ(index->last(), model.last());
    fixture.reopen(index);
  }
});

// A cursor on a pair of each leaf, and none of them is moved while all pairs go.
const Contract resting("resting_cursors_hold_up_no_reclamation", ordered, [](Fixture& fixture) {
  const auto index = Index::open_or_create(fixture.pool(), fixture.info());
  const auto keys = fixture.keys(1000);
  for (const Datum& key : keys) index->put(encoded(key), encoded(fixture.small_value()));
  std::vector<Index::IndexCursor> cursors;
  for (std::size_t i = 0; i < keys.size(); i += 20) {
    cursors.push_back(index->cursor());
    cursors.back().seek(encoded(keys[i]));
  }
  for (const Datum& key : keys) index->erase(encoded(key));
  fixture.pool().core()->background().drain();  // a replay may still be there that unlinks nodes
  detail::epoch::Reclaimer& reclaimer = fixture.pool().core()->reclaimer();
  EXPECT_TRUE(reclaimer.drain());
  EXPECT_EQ(reclaimer.pending(), 0U);
  for (std::size_t i = 0; i < cursors.size(); ++i) {
    EXPECT_EQ(cursors[i].key(), encoded(keys[20 * i])) << "its pair is its own";
    cursors[i].next();
    EXPECT_FALSE(cursors[i].valid());
  }
});

const Contract ranges("ranges_run_both_ways", ordered, [](Fixture& fixture) {
  auto index = fixture.open();
  const auto keys = fixture.keys(400);
  Model model;
  fill(fixture, index, model, keys);
  for (std::size_t i = 0; i < 40; ++i) {
    const Datum& from = keys[fixture.rng().below(keys.size())];
    const Datum& to = keys[fixture.rng().below(keys.size())];
    Rows expected = from < to ? model.range(from, to) : Rows();
    EXPECT_EQ(index.range(from, to), expected) << show(from) << " to " << show(to);
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(index.range(from, to, true), expected) << show(from) << " to " << show(to);
  }
  EXPECT_TRUE(index.range(keys[5], keys[5]).empty());
});

const Contract prefixes("prefixes_are_ranges", bytes_keys, [](Fixture& fixture) {
  if (!fixture.type().ordered) return;
  auto index = fixture.open();
  Model model;
  const std::string high(2, '\xff');
  for (const std::string& part : {std::string(), std::string("a"), std::string("ab"), high}) {
    for (const std::string& tail : {std::string(), std::string(1, '\0'), std::string("b"), high}) {
      const Datum value = fixture.small_value();
      index.put(part + tail, value);
      model.put(part + tail, value);
    }
  }
  for (const std::string prefix : {"", "a", "ab", "abb", "b", "\xff", "\xff\xff", "\xff\xff\xff"}) {
    Rows expected;
    for (const auto& [key, value] : model)
      if (key.bytes().starts_with(prefix)) expected.emplace_back(key, value);
    EXPECT_EQ(index.prefix(prefix), expected) << show(prefix);
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(index.prefix(prefix, true), expected) << show(prefix);
  }
});

const Contract erases("erase_range_erases_what_is_in_it", ordered, [](Fixture& fixture) {
  auto index = fixture.open();
  auto keys = fixture.keys(900);
  Model model;
  fill(fixture, index, model, keys);
  for (std::size_t i = 0; i < 12; ++i) {
    const Datum& from = keys[fixture.rng().below(keys.size())];
    const Datum& to = keys[fixture.rng().below(keys.size())];
    const Rows gone = from < to ? model.range(from, to) : Rows();
    EXPECT_EQ(index.erase_range(from, to), gone.size());
    for (const auto& [key, value] : gone) model.erase(key);
    EXPECT_EQ("", compare_all(index, model, keys));
    for (const Datum& key : keys) {
      const Datum value = fixture.small_value();
      if (index.insert(key, value)) model.insert(key, value);
    }
  }
});

/// The cursor of the interface of bytes, which moves as the typed ones do.
class Walk {
 public:
  Walk(const Index& index, const Model& model) : cursor_(index.cursor()), model_(model) {}

  void expect_at(const std::optional<Row>& row) {
    ASSERT_EQ(cursor_.valid(), row.has_value());
    if (!row) return;
    EXPECT_EQ(cursor_.key(), encoded(row->first));
    EXPECT_EQ(cursor_.value(), encoded(row->second));
  }
  void run() {
    cursor_.seek_first();
    for (auto row = model_.first(); row; row = model_.after(row->first)) {
      expect_at(row);
      if (!cursor_.valid()) return;
      cursor_.next();
    }
    EXPECT_FALSE(cursor_.valid());
    cursor_.seek_last();
    for (auto row = model_.last(); row; row = model_.before(row->first)) {
      expect_at(row);
      if (!cursor_.valid()) return;
      cursor_.prev();
    }
    EXPECT_FALSE(cursor_.valid());
  }

 private:
  Index::IndexCursor cursor_;
  const Model& model_;
};

const Contract walks("cursors_of_bytes_walk_both_ways", ordered, [](Fixture& fixture) {
  Model model;
  {
    auto index = fixture.open();
    fill(fixture, index, model, fixture.keys(500));
  }
  const auto index = Index::open(fixture.pool(), "index");
  Walk(*index, model).run();
});

// A cursor holds nothing, so everything may change around it, its own pair included.
const Contract survives("a_cursor_survives_any_change", ordered, [](Fixture& fixture) {
  const auto index = Index::open_or_create(fixture.pool(), fixture.info());
  std::vector<std::string> keys;
  for (const Datum& key : fixture.keys_of(600, KeyStyle::mixed)) keys.push_back(encoded(key));
  std::sort(keys.begin(), keys.end());
  const std::string value = encoded(fixture.small_value());
  for (const std::string& key : keys) index->put(key, value);
  auto cursor = index->cursor();
  cursor.seek(keys[300]);
  ASSERT_TRUE(cursor.valid());
  for (std::size_t i = 100; i < 500; ++i) index->erase(keys[i]);
  EXPECT_EQ(cursor.key(), keys[300]) << "its pair is its own";
  EXPECT_EQ(cursor.value(), value);
  cursor.next();
  EXPECT_EQ(cursor.key(), keys[500]);
  index->put(keys[400], value);
  cursor.prev();
  EXPECT_EQ(cursor.key(), keys[400]) << "a new pair is seen";
  cursor.prev();
  EXPECT_EQ(cursor.key(), keys[99]);
});

}  // namespace
}  // namespace perdix::test
