// The log's space: growth, limits, reclamation, a full pool, and the end of the log.
#include <algorithm>
#include <set>

#include "util/random.h"
#include "wal/log.h"
#include "wal/owned_block.h"
#include "wal/test_log.h"

namespace perdix::detail::wal {
namespace {

constexpr std::uint64_t kRecords = kSegmentSize / sizeof(Record);

std::uint64_t segments_of(Rig& rig, unsigned stripe) {
  const auto& words = rig.header().stripes[stripe].segments;
  return static_cast<std::uint64_t>(
      std::count_if(words.begin(), words.end(), [](pm::Offset word) { return word != 0; }));
}

TEST(LogSpace, AFullLogAdmitsNobodyUntilItIsCleaned) {
  Rig rig;
  constexpr Owner kOwner = 5;
  std::uint64_t appended = 0;
  for (; rig.log().admit(); ++appended) rig.log().append(rig.chain(kOwner), Type::put, 1, 2);
  EXPECT_GE(appended, kStripes * 4 * kRecords) << "a thread gets all stripes";
  EXPECT_LE(appended, kStripes * 7 * kRecords);
  EXPECT_TRUE(rig.log().crowded());
  EXPECT_EQ(rig.clean(), (std::vector<Owner>{kOwner}));
  EXPECT_FALSE(rig.log().crowded());
  EXPECT_TRUE(rig.log().admit());
  for (unsigned i = 0; i < kStripes; ++i) EXPECT_LE(segments_of(rig, i), Stripe::kLeast);
  EXPECT_EQ(rig.problems(), Strings{});
}

/// Begins chains of one record each until there is room for no other; how many.
std::size_t fill_with_chains(Rig& rig, const std::vector<Owner>& owners) {
  std::size_t begun = 0;
  const auto begin = [&] {
    for (; begun < owners.size(); ++begun) {
      rig.log().admit();
      rig.log().append(rig.chain(owners[begun]), Type::put, begun, 0);
    }
  };
  testing_files::expect_error(Errc::out_of_space, "full", begin);
  return begun;
}

TEST(LogSpace, ChainsOfOneRecordCanBeEndedInAFullLog) {
  Rig rig;
  const std::vector<Owner> owners = first_owners(kStripes * 8 * kRecords);
  std::size_t appended = 0;
  const auto append = [&] {
    rig.log().append(rig.chain(owners[appended]), Type::put, appended, 0);
    ++appended;
  };
  while (rig.log().admit()) append();
  // Those of admitted operations: a record and the promise of an END each.
  for (std::uint64_t i = 0; i < Stripe::kHeadroom / 2; ++i) append();
  std::set<Owner> ended;
  while (!rig.log().admit()) {
    for (std::size_t i = 0; i < kRecords; ++i) {
      const Owner oldest = rig.log().oldest()->owner.load();
      ended.insert(oldest);
      rig.end(oldest);
    }
    rig.log().checkpoint();
    rig.log().reclaim();
  }
  // Those of the same age end in any order.
  EXPECT_LE(*ended.rbegin(), ended.size() + 2 * kRecords) << "the oldest first";
  EXPECT_LE(ended.size(), 4 * kRecords) << "few give way";
  EXPECT_EQ(rig.problems(), Strings{});
  rig.restart(true, owners);
  for (std::size_t i = 0; i < appended; ++i) {
    EXPECT_EQ(rig.read(owners[i]),
              ended.contains(owners[i]) ? Changes{} : (Changes{{Type::put, i, 0}}));
  }
}

// Without a look at the log in between, in any order, by writers that nobody admitted; also after a
// restart, before it is over and behind it.
TEST(LogSpace, InAFullLogEveryChainCanBeEnded) {
  Rig rig;
  std::vector<Owner> owners = first_owners(kStripes * 16 * kRecords);
  owners.resize(fill_with_chains(rig, owners));
  EXPECT_GT(owners.size(), kStripes * 2 * kRecords);
  util::Random random(7);
  std::shuffle(owners.begin(), owners.end(), random);
  const std::size_t third = owners.size() / 3;
  for (std::size_t i = 0; i < third; ++i) rig.end(owners[i]);
  EXPECT_EQ(rig.problems(), Strings{});
  rig.open_log();
  for (const Owner owner : owners) rig.adopt(owner);
  for (std::size_t i = third; i < 2 * third; ++i) rig.end(owners[i]);
  rig.log().resumed();
  EXPECT_EQ(rig.problems(), Strings{});
  for (std::size_t i = 2 * third; i < owners.size(); ++i) rig.end(owners[i]);
  EXPECT_EQ(rig.problems(), Strings{});
  EXPECT_EQ(rig.log().oldest(), nullptr);
  rig.restart(true, owners);
  for (const Owner owner : owners) ASSERT_EQ(rig.log().surviving(owner), 0u);
}

// What a chain was promised when it began it gets though the log is full by then; also after a
// restart.
TEST(LogSpace, InAFullLogChainsGetTheRecordsThatTheyWerePromised) {
  Rig rig;
  constexpr unsigned kSure = 9, kChains = 200;
  std::vector<Owner> owners = first_owners(kStripes * 16 * kRecords);
  for (Owner owner = 1; owner <= kChains; ++owner) {
    rig.log().go_to(owner % kStripes);
    ASSERT_TRUE(rig.log().admit());
    rig.chain(owner).sure = kSure;
    rig.log().append(rig.chain(owner), Type::put, owner, 0);
  }
  const std::vector<Owner> others(owners.begin() + kChains, owners.end());
  fill_with_chains(rig, others);
  const auto append_surely = [&](unsigned times) {
    for (Owner owner = 1; owner <= kChains; ++owner) {
      for (unsigned i = 0; i < times; ++i)
        rig.log().append_surely(rig.chain(owner), Type::erase_key, owner, i);
    }
  };
  append_surely(4);
  EXPECT_EQ(rig.problems(), Strings{});
  testing_files::expect_error(Errc::out_of_space, "full",
                              [&] { rig.log().append(rig.chain(1), Type::put, 1, 1); });
  rig.open_log();
  for (const Owner owner : owners) {
    const Position head = rig.log().surviving(owner);
    if (head != 0) rig.adopt(owner, owner <= kChains ? kSure - 4 : 0);
  }
  append_surely(3);
  rig.log().resumed();
  append_surely(2);
  EXPECT_EQ(rig.problems(), Strings{});
  EXPECT_EQ(rig.read(1).size(), 1u + kSure);
  testing_files::expect_error(Errc::out_of_space, "full", [&] { append_surely(1); });
  for (const Owner owner : owners) rig.end(owner);
  EXPECT_EQ(rig.problems(), Strings{});
}

TEST(LogSpace, AnIdleLogGivesBackAllSegments) {
  Rig rig;
  for (Owner owner = 1; owner <= 100; ++owner) {
    for (std::uint64_t i = 0; i < kRecords / 2; ++i) rig.put(owner, i, i);
  }
  rig.log().shrink();
  EXPECT_EQ(rig.read(100).size(), kRecords / 2) << "chains are open: nothing of them is lost";
  EXPECT_EQ(rig.problems(), Strings{});
  for (Owner owner = 1; owner <= 99; ++owner) rig.end(owner);
  rig.log().shrink();
  EXPECT_EQ(rig.problems(), Strings{});
  rig.end(100);
  rig.log().shrink();
  for (unsigned i = 0; i < kStripes; ++i) EXPECT_EQ(segments_of(rig, i), 0u);
  EXPECT_EQ(rig.log().bytes_used(), 0u);
  EXPECT_EQ(rig.problems(), Strings{});
  rig.put(3, 1, 1);
  rig.put(4, 1, 1);
  rig.end(4);
  rig.restart(true, {3, 4});
  EXPECT_EQ(rig.read(3), (Changes{{Type::put, 1, 1}}));
  EXPECT_EQ(rig.read(4), Changes{});
  EXPECT_EQ(rig.problems(), Strings{});
}

TEST(LogSpace, ALogThatShrinksKeepsTheRoomForEnds) {
  Rig rig;
  constexpr Owner kChains = 20;
  const auto begin = [&](Owner owner) {
    rig.log().go_to(0);
    rig.put(owner, owner, 1);
  };
  for (Owner owner = 1; owner <= kChains; ++owner) begin(owner);
  // Until the tail's segment alone has no room for them.
  while (place_in_segment(rig.chain(1).head.load()) / sizeof(Record) + kChains / 2 < kRecords)
    begin(1);
  EXPECT_GE(segments_of(rig, 0), 2u);
  rig.log().shrink();
  EXPECT_EQ(segments_of(rig, 0), 2u);
  EXPECT_EQ(rig.problems(), Strings{});
  for (Owner owner = kChains; owner >= 1; --owner) {
    rig.log().go_to(0);
    rig.end(owner);
  }
  EXPECT_EQ(rig.problems(), Strings{});
  rig.log().shrink();
  EXPECT_EQ(segments_of(rig, 0), 0u);
}

TEST(LogSpace, NothingThatARestartNeedsIsReclaimed) {
  Rig rig;
  const std::vector<Owner> owners = first_owners(2);
  rig.put_at(0, owners[0], 1, 1);
  for (std::uint64_t i = 0; i < 3 * kRecords; ++i) rig.put_at(0, owners[1], i, i);
  rig.log().reclaim();
  EXPECT_EQ(rig.log().bytes_used(), (3 * kRecords + 1) * sizeof(Record)) << "no checkpoint";
  rig.log().checkpoint();
  rig.log().reclaim();
  EXPECT_EQ(rig.log().bytes_used(), (3 * kRecords + 1) * sizeof(Record)) << "an old chain";
  rig.log().go_to(0);
  rig.end(owners[0]);
  rig.log().reclaim();
  EXPECT_EQ(rig.log().bytes_used(), (3 * kRecords + 2) * sizeof(Record)) << "a chain as old";
  rig.log().go_to(0);
  rig.end(owners[1]);
  rig.log().reclaim();
  EXPECT_EQ(rig.log().bytes_used(), 3 * sizeof(Record));
  EXPECT_EQ(rig.problems(), Strings{});
  rig.restart(true, owners);
  EXPECT_EQ(rig.read(owners[0]), Changes{});
  EXPECT_EQ(rig.read(owners[1]), Changes{});
}

TEST(LogSpace, AChainHoldsBackWhatIsYoungerInAllStripes) {
  Rig rig;
  constexpr Owner kOld = 1, kYoung = 2, kOther = 3;
  const auto fill = [&] {
    for (std::uint64_t i = 0; i < 2 * kStripes * kRecords; ++i) rig.put(kOther, i, i);
    rig.end(kOther);
  };
  rig.put(kOld, 1, 1);
  fill();
  rig.put(kYoung, 1, 1);
  fill();
  const auto reclaimed = [&] {
    const std::uint64_t before = rig.log().bytes_used();
    rig.log().checkpoint();
    rig.log().reclaim();
    return before - rig.log().bytes_used();
  };
  EXPECT_EQ(reclaimed(), 0u);
  rig.put_at(4, kYoung, 2, 2);
  rig.end(kOld);
  constexpr std::uint64_t kFilled = 2 * kStripes * kSegmentSize;
  EXPECT_GE(reclaimed(), kFilled - kStripes * kSegmentSize);
  EXPECT_GE(rig.log().bytes_used(), kFilled);
  EXPECT_EQ(rig.problems(), Strings{});
  rig.restart(true, {kYoung});
  EXPECT_EQ(rig.read(kYoung), (Changes{{Type::put, 1, 1}, {Type::put, 2, 2}}));
  rig.end(kYoung);
  EXPECT_GE(reclaimed(), kFilled);
  EXPECT_EQ(rig.problems(), Strings{});
}

// The chains that survive have ages, so that not all of them must end before anything is reclaimed.
TEST(LogSpace, AfterARestartOldChainsHoldBackMoreThanYoungOnes) {
  Rig rig;
  const std::vector<Owner> owners = first_owners(64);
  for (const Owner owner : owners) {
    for (std::uint64_t i = 0; i < kStripes * kRecords / 16; ++i) rig.put(owner, i, i);
  }
  rig.restart(true, owners);
  rig.log().checkpoint();
  const std::uint64_t before = rig.log().bytes_used();
  for (std::size_t i = 0; i < owners.size() / 2; ++i) {
    const Owner oldest = rig.log().oldest()->owner.load();
    EXPECT_LE(oldest, i + 1 + kStripes * 2) << "no finer than a segment of each stripe";
    rig.end(oldest);
  }
  rig.log().checkpoint();
  rig.log().reclaim();
  EXPECT_LE(rig.log().bytes_used(), before / 2 + 2 * kStripes * kSegmentSize);
  EXPECT_EQ(rig.problems(), Strings{});
}

TEST(LogSpace, GenerationsWithoutEnd) {
  Rig rig;
  rig.put(1, 1, 1);
  // More than there can be while the first one has a chain.
  for (std::uint64_t i = 0; i < (Marks::kMaxMarks + 50) * kRecords; ++i) {
    if (i % (4 * kRecords) == 0) rig.log().checkpoint();
    if (!rig.log().admit()) break;  // the first chain holds back everything
    rig.log().append(rig.chain(2), Type::put, i, i);
    rig.end(2);
  }
  EXPECT_EQ(rig.read(1), (Changes{{Type::put, 1, 1}}));
  EXPECT_EQ(rig.problems(), Strings{});
  rig.end(1);
  for (std::uint64_t i = 0; i < 2 * Marks::kMaxMarks * kRecords; ++i) rig.put(2 + i % 100, i, i);
  EXPECT_EQ(rig.problems(), Strings{});
}

TEST(LogSpace, TheRingIsUsedAgainAndOldRecordsDontPass) {
  Rig rig;
  constexpr Owner owner = 5;
  const std::uint64_t rounds = (kSegmentsPerStripe + 5) * kRecords;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    rig.put_at(5, owner, i, ~i);
    if (i % kRecords != 0) continue;
    rig.log().checkpoint();
    rig.clean();  // before the stripe is full, and others are used
  }
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
  constexpr Owner owner = 1;
  for (std::uint64_t i = 0; i < 3 * kRecords; ++i) rig.put_at(1, owner, i, i);
  rig.log().go_to(1);
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
  rig.put_at(1, owner, 1, 2);
  EXPECT_EQ(rig.read(owner), (Changes{{Type::put, 1, 2}}));
}

TEST(LogSpace, InAFullPoolCleaningMakesRoom) {
  Rig rig(std::uint64_t{512} << 20, pool::kGrowthUnit);
  constexpr Owner owner = 6;
  std::uint64_t appended = 0;
  const auto fill = [&] {
    for (; rig.log().admit(); ++appended) rig.log().append(rig.chain(owner), Type::put, 1, 2);
  };
  testing_files::expect_error(Errc::out_of_space, "", fill);
  EXPECT_GT(appended, 100 * kRecords);
  EXPECT_EQ(rig.problems(), Strings{});
  rig.end(owner);
  rig.log().checkpoint();
  rig.log().reclaim();
  rig.pool().allocator().reclaim();
  EXPECT_TRUE(rig.log().admit());
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
  EXPECT_GT(rig.log().pm_bytes(), 6 * kSegmentSize);
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
  const Position head = rig.chain(1).head.load();
  rig.open_log();
  Header& header = rig.header();
  free_from(rig.pool(), header.checkpoint);
  free_from(rig.pool(), header.stripes[stripe_of_position(head)].segments[1]);
  destroy(rig.pool(), rig.word());
  EXPECT_EQ(pool::allocated_blocks(rig.pool()), std::vector<pm::Offset>{});
}

}  // namespace
}  // namespace perdix::detail::wal
