// Tests of the parts of the storm that decide what is correct: the model, the shapes and the plan.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "storm/model.h"
#include "storm/plan.h"
#include "storm/shape.h"

namespace perdix::test::storm {
namespace {

constexpr Found kNothing = std::nullopt;

TEST(StormCell, KnowsWhatReturned) {
  Cell cell;
  EXPECT_TRUE(cell.load().allows(kNothing));
  EXPECT_FALSE(cell.load().allows(1));
  cell.begin({1, true});
  cell.finish();
  EXPECT_TRUE(cell.load().allows(1));
  EXPECT_FALSE(cell.load().allows(kNothing));
  cell.begin({2, false});
  cell.cancel();
  EXPECT_FALSE(cell.load().allows(kNothing));
}

TEST(StormCell, AllowsBothWhileInFlight) {
  Cell cell;
  cell.begin({1, true});
  EXPECT_TRUE(cell.load().allows(1));
  EXPECT_TRUE(cell.load().allows(kNothing));
  EXPECT_FALSE(cell.load().allows(2));
}

TEST(StormCell, IsDecidedByAFinding) {
  Cell cell;
  cell.begin({1, true});
  cell.finish();
  cell.begin({2, false});
  EXPECT_FALSE(cell.decide(2));
  EXPECT_TRUE(cell.decide(1));
  EXPECT_FALSE(cell.decide(kNothing)) << "it was decided that the erase had no effect";
  cell.begin({2, false});
  EXPECT_TRUE(cell.decide(kNothing));
  EXPECT_FALSE(cell.decide(1));
}

TEST(StormCell, KeepsAValueThatAReaderHasSeen) {
  Cell cell;
  cell.begin({1, true});
  cell.see(kNothing);
  EXPECT_FALSE(cell.load().seen) << "that is how it was before";
  cell.see(1);
  EXPECT_TRUE(cell.load().seen);
  EXPECT_FALSE(cell.load().allows(kNothing));
  EXPECT_FALSE(cell.decide(kNothing));
  EXPECT_TRUE(cell.decide(1));
  cell.begin({2, false});
  EXPECT_FALSE(cell.load().seen);
  cell.see(kNothing);
  cell.finish();
  EXPECT_FALSE(cell.load().seen);
  EXPECT_TRUE(cell.load().allows(kNothing));
}

TEST(StormReader, MustFindUnchangedKeys) {
  const Snapshot still{{3, true}, std::nullopt};
  EXPECT_TRUE(allows(still, still, 3));
  EXPECT_FALSE(allows(still, still, 2));
  EXPECT_FALSE(allows(still, still, kNothing));
}

TEST(StormReader, MustNotMissAKeyThatIsReplaced) {
  const Snapshot before{{3, true}, std::nullopt};
  const Snapshot behind{{4, true}, std::nullopt};
  EXPECT_TRUE(allows(before, behind, 3));
  EXPECT_TRUE(allows(before, behind, 4));
  EXPECT_FALSE(allows(before, behind, kNothing));
  EXPECT_FALSE(allows(before, behind, 5));
}

TEST(StormReader, MayFindVersionsInBetween) {
  const Snapshot before{{3, true}, std::nullopt};
  const Snapshot behind{{7, true}, std::nullopt};
  EXPECT_TRUE(allows(before, behind, 5));
  EXPECT_TRUE(allows(before, behind, kNothing)) << "it may have been erased and put again";
  EXPECT_FALSE(allows(before, behind, 2));
  EXPECT_FALSE(allows(before, behind, 8));
}

TEST(StormHotCell, EndsWithTheLastEffectOfOneWriter) {
  HotCell cell;
  const State first = cell.next(true);
  cell.begin(1, first);
  cell.finish(1);
  const State second = cell.next(true);
  cell.begin(2, second);
  cell.finish(2);
  const State third = cell.next(true);
  cell.begin(1, third);
  cell.finish(1);
  EXPECT_FALSE(cell.decide(first.version)) << "writer 1 has written again since";
  EXPECT_FALSE(cell.decide(kNothing)) << "none of them has erased it";
  EXPECT_TRUE(cell.decide(second.version));
  EXPECT_FALSE(cell.decide(third.version)) << "it is decided";
}

TEST(StormHotCell, AllowsEffectsInFlight) {
  HotCell cell;
  const State erased = cell.next(false);
  const State written = cell.next(true);
  cell.begin(0, written);
  cell.finish(0);
  cell.begin(1, erased);
  EXPECT_TRUE(cell.decide(kNothing));
}

TEST(StormHotCell, AnOperationWithoutEffectIsForgotten) {
  HotCell cell;
  const State written = cell.next(true);
  cell.begin(3, written);
  cell.cancel(3);
  EXPECT_FALSE(cell.decide(written.version));
  EXPECT_TRUE(cell.decide(kNothing));
}

TEST(StormKeys, DifferByTheirNumbers) {
  constexpr std::uint32_t kNumbers = 1500;
  for (const Kind kind : {Kind::u64, Kind::bytes}) {
    for (const Shape shape : kShapes) {
      if (kind == Kind::u64 && needs_bytes(shape)) continue;
      const Keys keys = {kind, shape, 64, 7};
      std::set<Datum> seen;
      for (std::uint32_t i = 0; i < kNumbers; ++i) seen.insert(keys(i));
      EXPECT_EQ(seen.size(), kNumbers) << name_of(shape);
      EXPECT_GE(keys.most(), kNumbers) << name_of(shape);
    }
  }
}

TEST(StormKeys, ShareTheirPrefix) {
  for (const std::uint32_t prefix : {8U, 33U, 4096U}) {
    for (const Shape shape : {Shape::prefix, Shape::groups}) {
      const Keys keys = {Kind::bytes, shape, prefix, 7};
      EXPECT_EQ(keys(1).bytes().substr(0, prefix), keys(96).bytes().substr(0, prefix));
      EXPECT_GT(keys(1).bytes().size(), prefix);
    }
  }
}

TEST(StormValues, ProveThatTheyAreWhole) {
  for (const Sizes sizes : {Sizes::small, Sizes::mixed, Sizes::large}) {
    const Values values = {Kind::bytes, sizes};
    for (std::uint32_t i = 0; i < 200; ++i) {
      const Tag tag = {i, i * 3 + 1};
      std::string bytes = values(tag).bytes();
      EXPECT_EQ(values.read(bytes), tag);
      EXPECT_EQ(bytes.size(), values.size(tag));
      bytes.back() = static_cast<char>(bytes.back() + 1);
      EXPECT_NE(values.read(bytes), tag);
      EXPECT_NE(values.read(std::string_view(bytes).substr(0, bytes.size() - 1)), tag);
    }
  }
}

TEST(StormPlan, FollowsFromItsSeed) {
  for (std::uint64_t number = 0; number < 50; ++number) {
    EXPECT_EQ(describe(make_episode(5, number, {})), describe(make_episode(5, number, {})));
    EXPECT_NE(describe(make_episode(5, number, {})), describe(make_episode(6, number, {})));
  }
}

TEST(StormPlan, DrawsEverythingThereIs) {
  std::string all;
  for (std::uint64_t number = 0; number < 400; ++number)
    all += describe(make_episode(1, number, {}));
  for (const char* word : {"sptree",
                           "nbtree",
                           "fastfair",
                           "elimda",
                           "cceh",
                           "skiplist",
                           "forks",
                           "copies",
                           "recreate",
                           "suspend",
                           "stop",
                           "burn",
                           "misuse",
                           "descriptors",
                           "fault memory",
                           "fault map",
                           "fault space",
                           "fault sync",
                           "fault thread",
                           "orphan",
                           "kill",
                           "close",
                           "destroy",
                           "tight",
                           "page_cache",
                           "memory_controller",
                           "drain",
                           "few",
                           "hot",
                           "idle",
                           "groups",
                           "endings",
                           "nested",
                           "edges",
                           "visitors",
                           "restarts",
                           "damaged copies",
                           "killed 3 times while opening"}) {
    EXPECT_NE(all.find(word), std::string::npos) << word;
  }
}

TEST(StormPlan, LeavesOutWhatTheSelectionExcludes) {
  Selection selection;
  selection.engine = "nbtree";
  selection.without = parse_words("forks,memory,tight,orphan");
  for (std::uint64_t number = 0; number < 100; ++number) {
    const std::string text = describe(make_episode(1, number, selection));
    for (const char* word : {"forks", "fault memory", "tight", "orphan", "sptree"})
      EXPECT_EQ(text.find(word), std::string::npos) << word;
  }
  EXPECT_THROW(parse_words("no-such-word"), std::invalid_argument);
}

}  // namespace
}  // namespace perdix::test::storm
