// The log's space: growth, limits, reclamation, a full pool, and the end of the log.
#include "wal/log.h"
#include "wal/test_log.h"

namespace perdix::wal {
namespace {

constexpr std::uint64_t kRecords = kSegmentSize / sizeof(Record);

std::uint64_t segments_of(Rig& rig, unsigned stripe) {
  const auto& words = rig.header().stripes[stripe].segments;
  return static_cast<std::uint64_t>(
      std::count_if(words.begin(), words.end(), [](pm::Offset word) { return word != 0; }));
}

TEST(LogSpace, AFullLogAdmitsNobodyUntilItIsCleaned) {
  Rig rig;
  const Owner owner = owners_of_stripe(2, 1)[0];
  std::uint64_t appended = 0;
  for (; rig.log().admit(owner); ++appended) rig.log().append(rig.chain(owner), Type::put, 1, 2);
  EXPECT_GE(appended, 4 * kRecords);
  EXPECT_LE(appended, 7 * kRecords);
  EXPECT_TRUE(rig.log().crowded());
  EXPECT_TRUE(rig.log().admit(owners_of_stripe(3, 1)[0])) << "another stripe";
  EXPECT_EQ(rig.clean(), (std::vector<Owner>{owner}));
  EXPECT_FALSE(rig.log().crowded());
  EXPECT_TRUE(rig.log().admit(owner));
  EXPECT_LE(segments_of(rig, 2), Stripe::kLeast);
  EXPECT_EQ(rig.problems(), Strings{});
}

TEST(LogSpace, ChainsOfOneRecordCanBeEndedInAFullLog) {
  Rig rig;
  const std::vector<Owner> owners = owners_of_stripe(2, 8 * kRecords);
  std::size_t appended = 0;
  while (rig.log().admit(owners[appended])) {
    rig.log().append(rig.chain(owners[appended]), Type::put, appended, 0);
    ++appended;
  }
  // Those of admitted operations.
  for (std::uint64_t i = 0; i + 1 < kAdmitted; ++i, ++appended) {
    rig.log().append(rig.chain(owners[appended]), Type::put, appended, 0);
  }
  std::size_t ended = 0;
  while (!rig.log().admit(owners[0])) {
    for (std::size_t i = 0; i < kRecords; ++i) {
      const Owner oldest = rig.log().oldest()->owner.load();
      EXPECT_EQ(oldest, owners[ended++]);
      rig.end(oldest);
    }
    rig.log().checkpoint();
    rig.log().reclaim();
  }
  EXPECT_LE(ended, appended);
  EXPECT_EQ(rig.problems(), Strings{});
  rig.restart(true, owners);
  for (std::size_t i = 0; i < appended; ++i) {
    EXPECT_EQ(rig.read(owners[i]), i < ended ? Changes{} : (Changes{{Type::put, i, 0}}));
  }
}

TEST(LogSpace, NothingThatARestartNeedsIsReclaimed) {
  Rig rig;
  const std::vector<Owner> owners = owners_of_stripe(0, 2);
  rig.put(owners[0], 1, 1);
  for (std::uint64_t i = 0; i < 3 * kRecords; ++i) rig.put(owners[1], i, i);
  rig.log().reclaim();
  EXPECT_EQ(rig.log().bytes_used(), (3 * kRecords + 1) * sizeof(Record)) << "no checkpoint";
  rig.log().checkpoint();
  rig.log().reclaim();
  EXPECT_EQ(rig.log().bytes_used(), (3 * kRecords + 1) * sizeof(Record)) << "an old chain";
  rig.end(owners[0]);
  rig.log().reclaim();
  EXPECT_EQ(rig.log().bytes_used(), (3 * kRecords + 2) * sizeof(Record)) << "a chain as old";
  rig.end(owners[1]);
  rig.log().reclaim();
  EXPECT_EQ(rig.log().bytes_used(), 3 * sizeof(Record));
  EXPECT_EQ(rig.problems(), Strings{});
  rig.restart(true, owners);
  EXPECT_EQ(rig.read(owners[0]), Changes{});
  EXPECT_EQ(rig.read(owners[1]), Changes{});
}

TEST(LogSpace, TheRingIsUsedAgainAndOldRecordsDontPass) {
  Rig rig;
  const Owner owner = owners_of_stripe(5, 1)[0];
  const std::uint64_t rounds = (kSegmentsPerStripe + 5) * kRecords;
  for (std::uint64_t i = 0; i < rounds; ++i) rig.put(owner, i, ~i);
  EXPECT_GT(rig.chain(owner).head.load(), (kSegmentsPerStripe + 1) * kSegmentSize);
  const Changes before = rig.read(owner);
  EXPECT_EQ(before.back(), (Change{Type::put, rounds - 1, Word(~(rounds - 1))}));
  rig.restart(true, {owner});
  EXPECT_EQ(rig.read(owner), before);
  EXPECT_LT(segments_of(rig, 5), 10u);
  EXPECT_EQ(rig.problems(), Strings{});
}

TEST(LogSpace, SegmentsThatACrashLeftAreFreedLater) {
  Rig rig;
  const Owner owner = owners_of_stripe(1, 1)[0];
  for (std::uint64_t i = 0; i < 3 * kRecords; ++i) rig.put(owner, i, i);
  rig.end(owner);
  rig.log().checkpoint();
  // What a reclamation does before it frees the first segment.
  StripeLayout& stripe = rig.header().stripes[1];
  rig.pool().pm().publish(stripe.start, first_position(1) + 3 * kSegmentSize);
  EXPECT_GE(segments_of(rig, 1), 4u);
  rig.restart(true, {owner});
  EXPECT_EQ(rig.problems(), Strings{});
  EXPECT_GE(segments_of(rig, 1), 4u);
  rig.log().reclaim();
  EXPECT_LE(segments_of(rig, 1), Stripe::kLeast);
  EXPECT_EQ(rig.problems(), Strings{});
  rig.put(owner, 1, 2);
  EXPECT_EQ(rig.read(owner), (Changes{{Type::put, 1, 2}}));
}

TEST(LogSpace, InAFullPoolCleaningMakesRoom) {
  Rig rig(std::uint64_t{512} << 20, pool::kGrowthUnit);
  const Owner owner = owners_of_stripe(6, 1)[0];
  std::uint64_t appended = 0;
  const auto fill = [&] {
    for (; rig.log().admit(owner); ++appended) rig.log().append(rig.chain(owner), Type::put, 1, 2);
  };
  // A table that can be replaced needs a block beside it.
  rig.put(owner, 1, 2);
  rig.log().checkpoint();
  testing_files::expect_error(Errc::out_of_space, "", fill);
  EXPECT_GT(appended, 100 * kRecords);
  EXPECT_EQ(rig.problems(), Strings{});
  rig.end(owner);
  rig.log().checkpoint();
  rig.log().reclaim();
  rig.pool().allocator().reclaim();
  EXPECT_TRUE(rig.log().admit(owner));
  rig.put(owner, 5, 6);
  rig.restart(true, {owner});
  EXPECT_EQ(rig.read(owner), (Changes{{Type::put, 5, 6}}));
  EXPECT_EQ(rig.problems(), Strings{});
}

TEST(LogSpace, DestroyFreesEverything) {
  Rig rig;
  for (Owner owner = 1; owner < 3000; ++owner) rig.put(owner, owner, owner);
  rig.log().checkpoint();
  for (Owner owner = 1; owner < 5000; ++owner) rig.put(owner, owner, owner);
  EXPECT_GT(rig.log().pm_bytes(), 8 * 2 * kSegmentSize);
  rig.open_log();
  destroy(rig.pool(), rig.word());
  EXPECT_EQ(rig.word(), 0u);
  EXPECT_EQ(pool::allocated_blocks(rig.pool()), std::vector<pm::Offset>{});
  destroy(rig.pool(), rig.word());  // once more is nothing
  rig.create_log();
  rig.open_log();
  EXPECT_EQ(rig.log().appended(), 0u);
}

TEST(LogSpace, ADestructionThatWasInterruptedGoesOn) {
  Rig rig;
  for (Owner owner = 1; owner < 100; ++owner) rig.put(owner, owner, owner);
  rig.log().checkpoint();
  rig.open_log();
  Header& header = rig.header();
  free_from(rig.pool(), header.checkpoint);
  free_from(rig.pool(), header.stripes[0].segments[1]);
  destroy(rig.pool(), rig.word());
  EXPECT_EQ(pool::allocated_blocks(rig.pool()), std::vector<pm::Offset>{});
}

}  // namespace
}  // namespace perdix::wal
