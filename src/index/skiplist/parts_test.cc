// What each part of the list does by itself.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "epoch/guard.h"
#include "index/skiplist/check.h"
#include "index/skiplist/lookups.h"
#include "index/skiplist/range_lookups.h"
#include "index/skiplist/range_writer.h"
#include "index/skiplist/test_parts.h"

namespace perdix::detail::index::skiplist {
namespace {

using Number = std::uint64_t;
using Hashed = HashedKey<Number>;

constexpr SkipListOptions kWithBuffers{.dram_budget = kUnlimited, .technique = Technique::b};
constexpr SkipListOptions kWithPath{.dram_budget = kUnlimited, .technique = Technique::boc};

/// Keys of the height of tall nodes, and behind each of them some of low ones.
std::vector<Number> some_keys(unsigned tall, unsigned low) {
  std::vector<Number> keys;
  for (const Number first : keys_of_height(kTall, tall)) {
    if (!keys.empty() && first <= keys.back()) continue;
    keys.push_back(first);
    for (const Number key : keys_of_height(1, low, first)) keys.push_back(key);
  }
  return keys;
}

void expect_sound(TestParts& parts) {
  CheckReport report;
  ListChecker<Number>(parts.ways, parts.values, parts.buffers ? &*parts.buffers : nullptr)
      .check(report);
  for (const std::string& problem : report.problems) ADD_FAILURE() << problem;
}

// --- nodes.h ---

TEST(SkipListNodes, ASearchEndsBetweenTheNeighbours) {
  TestParts parts;
  const epoch::Guard guard;
  for (Number key = 10; key < 100; key += 10) parts.add(key);
  Nodes<Number>& nodes = parts.nodes();
  for (Number key = 1; key < 100; ++key) {
    for (const bool inclusive : {false, true}) {
      const Neighbours at = nodes.descend_from_head({key, inclusive});
      const Number below = inclusive ? key / 10 * 10 : (key - 1) / 10 * 10;
      EXPECT_EQ(at.before == &parts.head() ? 0 : at.before->key, below);
      EXPECT_EQ(at.next == nullptr ? 100 : at.next->key, below + 10);
    }
  }
}

TEST(SkipListNodes, TheLatchOfANodeFollowsFromItsKey) {
  TestParts parts;
  const epoch::Guard guard;
  Node& node = parts.add(7);
  EXPECT_EQ(&parts.nodes().latch_of(node), &parts.nodes().latch_of_key(Hashed(7)));
}

TEST(SkipListNodes, NoSearchBeginsBelowTheHighestNode) {
  TestParts parts;
  const epoch::Guard guard;
  for (const Number key : keys_of_height(5, 8)) {
    parts.add(key);
    EXPECT_GE(parts.nodes().levels(), levels_in_use(parts.head()));
  }
  EXPECT_EQ(Nodes<Number>(parts.core(), parts.head()).levels(), 5U);
}

TEST(SkipListNodes, AnErasedNodeThatIsFoundTwiceIsDamage) {
  TestParts parts;
  const epoch::Guard guard;
  Node& node = parts.add(1);
  Erased erased;
  EXPECT_FALSE(parts.nodes().is_gone(node, erased));
  node.first |= 1;
  EXPECT_TRUE(parts.nodes().is_gone(node, erased));
  EXPECT_THROW((void)parts.nodes().is_gone(node, erased), Error);
  node.first ^= 1;
}

TEST(SkipListNodes, KeysOfStringsAreHashedAsTheirWords) {
  const std::string_view key = "key";
  const Word word = Word{Codec<std::string>::hash16(key)} << 48 | 64;
  EXPECT_EQ(HashedKey<std::string>(key).hash, HashedKey<std::string>(key, word).hash);
}

// --- ways.h ---

TEST(SkipListWays, LeadToTheSamePlaceByEachWay) {
  TestParts plain, cached(kWithPath);
  const epoch::Guard guard;
  cached.ways.start_filling(false);
  ASSERT_TRUE(cached.ways.are_cached());
  ASSERT_FALSE(plain.ways.are_cached());
  for (const Number key : some_keys(10, 20)) plain.add(key), cached.add(key);
  const auto key_of = [](const Node* node) { return node == nullptr ? 0 : node->key; };
  for (Number key = 0; key < plain.keys().back() + 2; ++key) {
    EXPECT_EQ(key_of(plain.ways.descend({key}).next), key_of(cached.ways.descend({key}).next));
    EXPECT_EQ(key_of(&plain.ways.last_tall({key})), key_of(&cached.ways.last_tall({key})));
    EXPECT_EQ(cached.ways.trace(key, true).levels, plain.ways.trace(key, false).levels);
    EXPECT_LE(cached.ways.trace(key, false).levels, plain.ways.trace(key, false).levels);
  }
  expect_sound(cached);
}

TEST(SkipListWays, ANodeThatGoesLeavesThem) {
  TestParts parts(kWithPath);
  const epoch::Guard guard;
  parts.ways.start_filling(false);
  const std::vector<Number> keys = keys_of_height(kTall, 8);
  for (const Number key : keys) parts.add(key);
  // The first ones have come before the list had as many levels.
  Node& node = parts.ways.last_tall({keys.back(), true});
  ASSERT_EQ(node.key, keys.back());
  parts.ways.remove(node);
  EXPECT_LT(parts.ways.last_tall({keys.back(), true}).key, keys.back());
  parts.ways.add(node);
  EXPECT_EQ(&parts.ways.last_tall({keys.back(), true}), &node);
}

// --- lookups.h ---

TEST(SkipListLookups, FindTheSameOneByOneAndTogether) {
  for (const SkipListOptions& options : {SkipListOptions{}, kWithPath}) {
    TestParts parts(options);
    const epoch::Guard guard;
    parts.ways.start_filling(false);
    for (const Number key : some_keys(6, 10)) parts.add(key);
    const std::vector<Number> all = parts.keys();
    for (Number first = 0; first < all.back(); first += kGroup) {
      std::vector<Number> keys;
      for (Number i = 0; i < kGroup; ++i) keys.push_back(first + i);
      search_together(parts.ways, std::span<const Number>(keys),
                      [&](std::size_t i, const GroupedSearch<Number>& search) {
                        const bool there = std::binary_search(all.begin(), all.end(), keys[i]);
                        const auto found = find_from(parts.ways, search.found(), Hashed(keys[i]));
                        EXPECT_EQ(found, there ? std::optional(keys[i]) : std::nullopt);
                        EXPECT_EQ(&search.tall(), &parts.ways.last_tall({keys[i]}));
                      });
    }
  }
}

TEST(SkipListLookups, GoOnWhereTheLimitWas) {
  TestParts parts;
  const epoch::Guard guard;
  const std::vector<Number> keys = keys_of_height(1, 200);
  for (const Number key : keys) parts.add(key);
  std::vector<Number> seen;
  SeenNode at;
  Number position = 0;
  const auto add = [&](const Node*, Word key, Word) { seen.push_back(key); };
  while (collect_nodes(parts.ways, at, position, kNoLimit, add)) {
    EXPECT_EQ(seen.size() % kShownAtOnce, 0U);
    EXPECT_EQ(position, keys[seen.size()]);
    if (seen.size() == kShownAtOnce) at = {};  // as after a change
  }
  EXPECT_EQ(seen, keys);
}

// --- towers.h, node_writer.h ---

TEST(SkipListWriter, AttemptsOfAllModes) {
  TestParts parts;
  const epoch::Guard guard;
  NodeWriter<Number>& writer = parts.writer;
  Erased erased;
  const NewValue one(1), two(2);
  const auto write = [&](Mode mode, Number value, const NewValue* expected = nullptr) {
    return writer.write({Hashed(5), NewValue(value), mode, expected}, erased);
  };
  EXPECT_EQ(write(Mode::update, 1), false);
  EXPECT_EQ(write(Mode::insert, 1), true);
  EXPECT_EQ(write(Mode::insert, 2), false);
  EXPECT_EQ(write(Mode::update, 2, &two), false);
  EXPECT_EQ(write(Mode::update, 2, &one), true);
  EXPECT_EQ(parts.pairs.change(), 1);
  EXPECT_EQ(writer.erase(Hashed(5), &one, erased), false);
  EXPECT_EQ(writer.erase(Hashed(5), &two, erased), true);
  EXPECT_EQ(writer.erase(Hashed(5), nullptr, erased), false);
  EXPECT_EQ(parts.pairs.change(), 0);
}

TEST(SkipListTowers, ArePreventedByAChangeSinceTheSearch) {
  TestParts parts;
  const epoch::Guard guard;
  parts.add(10);
  const Path path = parts.ways.trace(5, false);
  parts.add(7);
  Erased erased;
  TowerLatches latches;
  Latch& own = parts.nodes().latch_of_key(Hashed(5));
  EXPECT_FALSE(parts.towers.lock(latches, path, 1, own, erased));
  latches.release();
  EXPECT_TRUE(parts.towers.lock(latches, parts.ways.trace(5, false), 1, own, erased));
}

// --- ranges.h, runs.h ---

TEST(SkipListRanges, ATallNodeOwnsWhatIsUpToTheNextOne) {
  TestParts parts;
  const epoch::Guard guard;
  for (const Number key : some_keys(8, 6)) parts.add(key);
  const Ranges<Number> ranges(parts.ways, 0);
  const std::vector<Number> tall = parts.keys(kTall - 1);
  ASSERT_GT(tall.size(), 2U);
  Erased erased;
  for (Number key = 0; key < tall.back() + 50; ++key) {
    const auto next = std::upper_bound(tall.begin(), tall.end(), key);
    const SeenNode owner = ranges.owner_of({key, true}, erased);
    EXPECT_EQ(owner.node == &parts.head() ? 0 : owner.node->key,
              next == tall.begin() ? 0 : *std::prev(next));
    EXPECT_TRUE(ranges.owns(*owner.node));
    EXPECT_EQ(&ranges.at(parts.core().offset(owner.node)), owner.node);
    const Node* const end = ranges.end_of(*owner.node);
    EXPECT_EQ(end == nullptr, next == tall.end());
    if (end == nullptr) continue;
    EXPECT_EQ(ranges.owner_at(parts.head(), {end->key, true}, erased).node, nullptr);
  }
}

TEST(SkipListRanges, TheLastPairIsNotThatOfAHollowNode) {
  TestParts parts;
  const epoch::Guard guard;
  for (const Number key : {10U, 20U, 30U}) parts.add(key);
  const Ranges<Number> ranges(parts.ways, 0);
  EXPECT_EQ(ranges.last(parts.head(), {30, true})->key, 30U);
  EXPECT_EQ(ranges.last(parts.head(), {30, false})->key, 20U);
  EXPECT_FALSE(ranges.last(parts.head(), {10, false}));
  Node& middle = *ranges.find(parts.head(), Hashed(20));
  middle.meta = Meta{.hollow = true, .height = height_of(middle)}.pack();
  EXPECT_EQ(ranges.last(parts.head(), {30, false})->key, 10U);
}

/// Pairs before, between and behind those of the list, more than one commit can link.
TEST(SkipListRuns, BringAllPairsIntoTheirLevels) {
  TestParts parts;
  const epoch::Guard guard;
  std::vector<Pair> pairs;
  for (const Number key : {100U, 200U}) parts.add(key);
  for (Number key = 90; key < 98; ++key) pairs.push_back({key, key});
  for (Number key = 198; key < 206; ++key)
    if (key != 200) pairs.push_back({key, key});
  ASSERT_TRUE(parts.keys(kTall - 1).empty());
  Runs<Number> runs(parts.nodes(), parts.towers);
  LowNodes low;
  std::vector<unsigned> sizes;
  for (std::size_t moved = 0; moved < pairs.size(); moved += sizes.back())
    sizes.push_back(runs.insert(parts.head(), std::span(pairs).subspan(moved), low));
  EXPECT_EQ(sizes, (std::vector<unsigned>{4, 4, 2, 4, 1}));
  runs.raise_all(low);
  std::vector<Number> keys = {100, 200};
  for (const Pair& pair : pairs) keys.push_back(pair.key);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(parts.keys(), keys);
  for (unsigned i = 0; i < low.count; ++i) EXPECT_GE(height_of(*low.nodes[i]), kTall);
  expect_sound(parts);
}

TEST(SkipListRuns, ATallNodeIsLowUntilItIsRaised) {
  constexpr unsigned kHeight = 6;
  TestParts parts(kWithPath);
  const epoch::Guard guard;
  parts.ways.start_filling(false);
  const std::vector<Number> keys = keys_of_height(kHeight, kHeight + 1);
  for (unsigned i = 0; i < kHeight; ++i) parts.add(keys[i]);
  ASSERT_EQ(parts.keys(kHeight - 1), std::vector{keys[kHeight - 1]});
  Runs<Number> runs(parts.nodes(), parts.towers);
  LowNodes low;
  EXPECT_EQ(runs.insert(parts.ways.last_tall({keys.back()}), std::array{Pair{keys.back(), 1}}, low),
            1U);
  ASSERT_EQ(low.count, 1U);
  EXPECT_EQ(parts.keys(1).back(), keys.back());
  EXPECT_EQ(parts.keys(2).back(), keys[kHeight - 1]);
  runs.raise_all(low);
  for (unsigned level = 0; level < kHeight; ++level)
    EXPECT_EQ(parts.keys(level).back(), keys.back()) << level;
  expect_sound(parts);
}

// --- buffers.h, range_lookups.h, range_writer.h ---

class SkipListBufferParts : public testing::Test {
 protected:
  std::optional<bool> write(Number key) {
    Erased erased;
    return writer_.write({Hashed(key), NewValue(key), Mode::insert, nullptr}, erased);
  }
  std::optional<Word> find(Number key) {
    return find_in_ranges(*parts_.buffers, Hashed(key), parts_.ways.last_tall({key, true}));
  }

  TestParts parts_{kWithBuffers};
  RangeWriter<Number> writer_{*parts_.buffers, parts_.writer, parts_.towers, parts_.pairs};
  const epoch::Guard guard_;
};

TEST_F(SkipListBufferParts, NewPairsGetNoNodesUntilTheBufferIsFull) {
  Number key = 0;
  for (; key < BufferShape::kPairs; ++key) EXPECT_EQ(write(key), true);
  EXPECT_TRUE(parts_.keys().empty());
  EXPECT_EQ(parts_.buffers->of(parts_.head())->size(), BufferShape::kPairs);
  EXPECT_EQ(write(key), std::nullopt) << "it is merged";
  EXPECT_EQ(parts_.keys().size(), BufferShape::kPairs);
  EXPECT_EQ(write(key), true);
  for (Number i = 0; i <= key + 1; ++i)
    EXPECT_EQ(find(i), i <= key ? std::optional(i) : std::nullopt);
  EXPECT_EQ(find_last_in_ranges<Number>(*parts_.buffers, {key, true})->key, key);
  EXPECT_EQ(find_last_in_ranges<Number>(*parts_.buffers, {key, false})->key, key - 1);
  expect_sound(parts_);
}

TEST_F(SkipListBufferParts, AnErasedOwnerIsHollowUntilItsBufferIsEmpty) {
  for (const Number key : keys_of_height(kTall, kTall)) parts_.add(key);
  const Number tall = parts_.keys(kTall - 1).at(0), low = tall + 1;
  EXPECT_EQ(write(low), true);
  Erased erased;
  EXPECT_EQ(writer_.erase(Hashed(tall), nullptr, erased), true);
  EXPECT_EQ(writer_.erase(Hashed(tall), nullptr, erased), false);
  Node& node = parts_.ways.last_tall({tall, true});
  EXPECT_TRUE(is_hollow(node));
  EXPECT_EQ(node.key, tall);
  EXPECT_EQ(find(tall), std::nullopt);
  EXPECT_EQ(find(low), low);
  EXPECT_LT(find_last_in_ranges<Number>(*parts_.buffers, {tall, true})->key, tall);
  expect_sound(parts_);
  EXPECT_EQ(writer_.erase(Hashed(low), nullptr, erased), true);
  EXPECT_TRUE(parts_.keys(kTall - 1).empty());
  expect_sound(parts_);
}

TEST_F(SkipListBufferParts, TheCheckFindsAKeyOfAnotherRange) {
  for (const Number key : keys_of_height(kTall, kTall)) parts_.add(key);
  const Number tall = parts_.keys(kTall - 1).at(0);
  EXPECT_EQ(write(tall - 1), true);
  EXPECT_EQ(write(tall + 1), true);
  expect_sound(parts_);
  Node& owner = parts_.ways.last_tall({tall, true});
  const std::uint64_t end = link_word(parts_.head(), kTall - 1);
  link_word(parts_.head(), kTall - 1) = link_word(owner, kTall - 1);
  CheckReport report;
  ListChecker<Number>(parts_.ways, parts_.values, &*parts_.buffers).check(report);
  link_word(parts_.head(), kTall - 1) = end;
  EXPECT_FALSE(report.ok()) << "a buffer is not that of an owner (L8)";
}

}  // namespace
}  // namespace perdix::detail::index::skiplist
