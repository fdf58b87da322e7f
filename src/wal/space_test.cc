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

std::uint64_t segments_of(Fixture& fixture, unsigned stripe) {
  const auto& words = fixture.header().stripes[stripe].segments;
  return static_cast<std::uint64_t>(
      std::count_if(words.begin(), words.end(), [](pm::Offset word) { return word != 0; }));
}

TEST(LogSpace, AFullLogAdmitsNoThreadUntilItIsCleaned) {
  Fixture fixture;
  constexpr Owner kOwner = 5;
  std::uint64_t appended = 0;
  for (; fixture.log().admit(); ++appended)
    fixture.log().append(fixture.chain(kOwner), Type::put, 1, 2);
  EXPECT_GE(appended, kStripes * 4 * kRecords) << "a thread gets all stripes";
  EXPECT_LE(appended, kStripes * 7 * kRecords);
  EXPECT_TRUE(fixture.log().crowded());
  EXPECT_EQ(fixture.clean(), (std::vector<Owner>{kOwner}));
  EXPECT_FALSE(fixture.log().crowded());
  EXPECT_TRUE(fixture.log().admit());
  for (unsigned i = 0; i < kStripes; ++i) EXPECT_LE(segments_of(fixture, i), Stripe::kMinSegments);
  EXPECT_EQ(fixture.problems(), Strings{});
}

/// Begins chains of one record each until there is room for no other; how many.
std::size_t fill_with_chains(Fixture& fixture, const std::vector<Owner>& owners) {
  std::size_t begun = 0;
  const auto begin = [&] {
    for (; begun < owners.size(); ++begun) {
      fixture.log().admit();
      fixture.log().append(fixture.chain(owners[begun]), Type::put, begun, 0);
    }
  };
  testing_files::expect_error(Errc::out_of_space, "full", begin);
  return begun;
}

TEST(LogSpace, ChainsOfOneRecordCanBeEndedInAFullLog) {
  Fixture fixture;
  const std::vector<Owner> owners = first_owners(kStripes * 8 * kRecords);
  std::size_t appended = 0;
  const auto append = [&] {
    fixture.log().append(fixture.chain(owners[appended]), Type::put, appended, 0);
    ++appended;
  };
  while (fixture.log().admit()) append();
  // Those of admitted operations: a record and the promise of an END each.
  for (std::uint64_t i = 0; i < Stripe::kHeadroom / 2; ++i) append();
  std::set<Owner> ended;
  while (!fixture.log().admit()) {
    for (std::size_t i = 0; i < kRecords; ++i) {
      const Owner oldest = fixture.log().oldest()->owner.load();
      ended.insert(oldest);
      fixture.end(oldest);
    }
    fixture.log().checkpoint();
    fixture.log().reclaim();
  }
  // Those of the same age end in any order.
  EXPECT_LE(*ended.rbegin(), ended.size() + 2 * kRecords) << "the oldest first";
  EXPECT_LE(ended.size(), 4 * kRecords) << "few give way";
  EXPECT_EQ(fixture.problems(), Strings{});
  fixture.restart(true, owners);
  for (std::size_t i = 0; i < appended; ++i) {
    EXPECT_EQ(fixture.read(owners[i]),
              ended.contains(owners[i]) ? Changes{} : (Changes{{Type::put, i, 0}}));
  }
}

// Without a look at the log in between, in any order, by writers that were not admitted; also after
// a restart, during its resumption and behind it.
TEST(LogSpace, InAFullLogEveryChainCanBeEnded) {
  Fixture fixture;
  std::vector<Owner> owners = first_owners(kStripes * 16 * kRecords);
  owners.resize(fill_with_chains(fixture, owners));
  EXPECT_GT(owners.size(), kStripes * 2 * kRecords);
  util::Random random(7);
  std::shuffle(owners.begin(), owners.end(), random);
  const std::size_t third = owners.size() / 3;
  for (std::size_t i = 0; i < third; ++i) fixture.end(owners[i]);
  EXPECT_EQ(fixture.problems(), Strings{});
  fixture.open_log();
  for (const Owner owner : owners) fixture.adopt(owner);
  for (std::size_t i = third; i < 2 * third; ++i) fixture.end(owners[i]);
  fixture.log().resumed();
  EXPECT_EQ(fixture.problems(), Strings{});
  for (std::size_t i = 2 * third; i < owners.size(); ++i) fixture.end(owners[i]);
  EXPECT_EQ(fixture.problems(), Strings{});
  EXPECT_EQ(fixture.log().oldest(), nullptr);
  fixture.restart(true, owners);
  for (const Owner owner : owners) ASSERT_EQ(fixture.log().surviving(owner), 0u);
}

// What a chain was promised when it began it gets though the log is full by then; also after a
// restart.
TEST(LogSpace, InAFullLogChainsGetTheRecordsThatTheyWerePromised) {
  Fixture fixture;
  constexpr unsigned kSure = 9, kChains = 200;
  std::vector<Owner> owners = first_owners(kStripes * 16 * kRecords);
  for (Owner owner = 1; owner <= kChains; ++owner) {
    fixture.log().go_to(owner % kStripes);
    ASSERT_TRUE(fixture.log().admit());
    fixture.chain(owner).sure = kSure;
    fixture.log().append(fixture.chain(owner), Type::put, owner, 0);
  }
  const std::vector<Owner> others(owners.begin() + kChains, owners.end());
  fill_with_chains(fixture, others);
  const auto append_surely = [&](unsigned times) {
    for (Owner owner = 1; owner <= kChains; ++owner) {
      for (unsigned i = 0; i < times; ++i)
        fixture.log().append_surely(fixture.chain(owner), Type::erase_key, owner, i);
    }
  };
  append_surely(4);
  EXPECT_EQ(fixture.problems(), Strings{});
  testing_files::expect_error(Errc::out_of_space, "full",
                              [&] { fixture.log().append(fixture.chain(1), Type::put, 1, 1); });
  fixture.open_log();
  for (const Owner owner : owners) {
    const Position head = fixture.log().surviving(owner);
    if (head != 0) fixture.adopt(owner, owner <= kChains ? kSure - 4 : 0);
  }
  append_surely(3);
  fixture.log().resumed();
  append_surely(2);
  EXPECT_EQ(fixture.problems(), Strings{});
  EXPECT_EQ(fixture.read(1).size(), 1u + kSure);
  testing_files::expect_error(Errc::out_of_space, "full", [&] { append_surely(1); });
  for (const Owner owner : owners) fixture.end(owner);
  EXPECT_EQ(fixture.problems(), Strings{});
}

// All that a log promises counts, and not what one of its stripes does: else a writer would end
// chains for the sake of a stripe in which none of them began.
TEST(LogSpace, PromisesOfOneStripeDoNotCrowdALogThatHasRoom) {
  Fixture fixture;
  constexpr unsigned kSure = 500, kChains = 6;
  constexpr std::uint64_t kLimit = std::uint64_t{2} << 20;  // of a log, at least
  static_assert(kChains * (kSure + 1) * sizeof(Record) > kLimit / kStripes / 4);
  for (Owner owner = 1; owner <= kChains; ++owner) {
    fixture.log().go_to(0);
    ASSERT_TRUE(fixture.log().admit());
    fixture.chain(owner).sure = kSure;
    fixture.log().append(fixture.chain(owner), Type::put, owner, 0);
  }
  EXPECT_FALSE(fixture.log().crowded());
  Owner more = kChains;
  while ((more + 1) * (kSure + 1) * sizeof(Record) <= kLimit / 4) {
    ASSERT_TRUE(fixture.log().admit());
    fixture.chain(++more).sure = kSure;
    fixture.log().append(fixture.chain(more), Type::put, more, 0);
  }
  EXPECT_FALSE(fixture.log().crowded());
  ASSERT_TRUE(fixture.log().admit()) << "there is room until it is crowded";
  fixture.chain(++more).sure = kSure;
  fixture.log().append(fixture.chain(more), Type::put, more, 0);
  EXPECT_TRUE(fixture.log().crowded());
  EXPECT_TRUE(fixture.log().admit());
}

// What a chain is promised later is as good as what it was promised when it began.
TEST(LogSpace, AChainGetsTheRecordsThatItIsPromisedLater) {
  Fixture fixture;
  constexpr unsigned kFirst = 2, kMore = 5;
  std::vector<Owner> owners = first_owners(kStripes * 16 * kRecords);
  fixture.chain(1).sure = kFirst;
  fixture.put(1, 1, 0);
  EXPECT_TRUE(fixture.log().promise(fixture.chain(1), kMore));
  EXPECT_EQ(fixture.chain(1).sure, kFirst + kMore);
  fill_with_chains(fixture, {owners.begin() + 1, owners.end()});
  EXPECT_FALSE(fixture.log().promise(fixture.chain(1), 1)) << "the log is full";
  EXPECT_EQ(fixture.chain(1).sure, kFirst + kMore);
  const auto append = [&] { fixture.log().append_surely(fixture.chain(1), Type::erase_key, 1, 0); };
  for (unsigned i = 0; i < kFirst + 1; ++i) append();
  fixture.open_log();
  for (const Owner owner : owners) {
    if (fixture.log().surviving(owner) != 0) fixture.adopt(owner, owner == 1 ? kMore - 1 : 0);
  }
  for (unsigned i = 0; i < kMore - 1; ++i) append();
  testing_files::expect_error(Errc::out_of_space, "full", append);
  fixture.log().resumed();
  fixture.end(1);
  EXPECT_EQ(fixture.problems(), Strings{});
}

TEST(LogSpace, AnIdleLogGivesBackAllSegments) {
  Fixture fixture;
  for (Owner owner = 1; owner <= 100; ++owner) {
    for (std::uint64_t i = 0; i < kRecords / 2; ++i) fixture.put(owner, i, i);
  }
  fixture.log().shrink();
  EXPECT_EQ(fixture.read(100).size(), kRecords / 2) << "chains are open: nothing of them is lost";
  EXPECT_EQ(fixture.problems(), Strings{});
  for (Owner owner = 1; owner <= 99; ++owner) fixture.end(owner);
  fixture.log().shrink();
  EXPECT_EQ(fixture.problems(), Strings{});
  fixture.end(100);
  fixture.log().shrink();
  for (unsigned i = 0; i < kStripes; ++i) EXPECT_EQ(segments_of(fixture, i), 0u);
  EXPECT_EQ(fixture.log().bytes_used(), 0u);
  EXPECT_EQ(fixture.problems(), Strings{});
  fixture.put(3, 1, 1);
  fixture.put(4, 1, 1);
  fixture.end(4);
  fixture.restart(true, {3, 4});
  EXPECT_EQ(fixture.read(3), (Changes{{Type::put, 1, 1}}));
  EXPECT_EQ(fixture.read(4), Changes{});
  EXPECT_EQ(fixture.problems(), Strings{});
}

// An opening does not know how much of the room behind the tails its chains were promised.
TEST(LogSpace, OpeningsAddNoSegments) {
  Fixture fixture;
  for (int opening = 0; opening < 100; ++opening) {
    fixture.put(1, 1, 1);
    fixture.open_log();
    fixture.adopt(1);
    fixture.put(1, 2, 2);  // before the log is resumed
    fixture.log().resumed();
    fixture.end(1);
    fixture.log().reclaim();
    for (unsigned i = 0; i < kStripes; ++i) {
      ASSERT_LE(segments_of(fixture, i), 2 * Stripe::kMinSegments) << opening;
    }
  }
  EXPECT_EQ(fixture.problems(), Strings{});
}

TEST(LogSpace, ALogThatShrinksKeepsTheRoomForEnds) {
  Fixture fixture;
  constexpr Owner kChains = 20;
  const auto begin = [&](Owner owner) {
    fixture.log().go_to(0);
    fixture.put(owner, owner, 1);
  };
  for (Owner owner = 1; owner <= kChains; ++owner) begin(owner);
  // Until the tail's segment alone has no room for them.
  while (place_in_segment(fixture.chain(1).head.load()) / sizeof(Record) + kChains / 2 < kRecords)
    begin(1);
  EXPECT_GE(segments_of(fixture, 0), 2u);
  fixture.log().shrink();
  EXPECT_EQ(segments_of(fixture, 0), 2u);
  EXPECT_EQ(fixture.problems(), Strings{});
  for (Owner owner = kChains; owner >= 1; --owner) {
    fixture.log().go_to(0);
    fixture.end(owner);
  }
  EXPECT_EQ(fixture.problems(), Strings{});
  fixture.log().shrink();
  EXPECT_EQ(segments_of(fixture, 0), 0u);
}

TEST(LogSpace, NothingThatARestartNeedsIsReclaimed) {
  Fixture fixture;
  const std::vector<Owner> owners = first_owners(2);
  fixture.put_at(0, owners[0], 1, 1);
  for (std::uint64_t i = 0; i < 3 * kRecords; ++i) fixture.put_at(0, owners[1], i, i);
  fixture.log().reclaim();
  EXPECT_EQ(fixture.log().bytes_used(), (3 * kRecords + 1) * sizeof(Record)) << "no checkpoint";
  fixture.log().checkpoint();
  fixture.log().reclaim();
  EXPECT_EQ(fixture.log().bytes_used(), (3 * kRecords + 1) * sizeof(Record)) << "an old chain";
  fixture.log().go_to(0);
  fixture.end(owners[0]);
  fixture.log().reclaim();
  EXPECT_EQ(fixture.log().bytes_used(), (3 * kRecords + 2) * sizeof(Record)) << "a chain as old";
  fixture.log().go_to(0);
  fixture.end(owners[1]);
  fixture.log().reclaim();
  EXPECT_EQ(fixture.log().bytes_used(), 3 * sizeof(Record));
  EXPECT_EQ(fixture.problems(), Strings{});
  fixture.restart(true, owners);
  EXPECT_EQ(fixture.read(owners[0]), Changes{});
  EXPECT_EQ(fixture.read(owners[1]), Changes{});
}

TEST(LogSpace, AChainHoldsBackWhatIsYoungerInAllStripes) {
  Fixture fixture;
  constexpr Owner kOld = 1, kYoung = 2, kOther = 3;
  const auto fill = [&] {
    for (std::uint64_t i = 0; i < 2 * kStripes * kRecords; ++i) fixture.put(kOther, i, i);
    fixture.end(kOther);
  };
  fixture.put(kOld, 1, 1);
  fill();
  fixture.put(kYoung, 1, 1);
  fill();
  const auto reclaimed = [&] {
    const std::uint64_t before = fixture.log().bytes_used();
    fixture.log().checkpoint();
    fixture.log().reclaim();
    return before - fixture.log().bytes_used();
  };
  EXPECT_EQ(reclaimed(), 0u);
  fixture.put_at(4, kYoung, 2, 2);
  fixture.end(kOld);
  constexpr std::uint64_t kFilled = 2 * kStripes * kSegmentSize;
  EXPECT_GE(reclaimed(), kFilled - kStripes * kSegmentSize);
  EXPECT_GE(fixture.log().bytes_used(), kFilled);
  EXPECT_EQ(fixture.problems(), Strings{});
  fixture.restart(true, {kYoung});
  EXPECT_EQ(fixture.read(kYoung), (Changes{{Type::put, 1, 1}, {Type::put, 2, 2}}));
  fixture.end(kYoung);
  EXPECT_GE(reclaimed(), kFilled);
  EXPECT_EQ(fixture.problems(), Strings{});
}

// The chains that survive have ages, so that not all of them must end before anything is reclaimed.
TEST(LogSpace, AfterARestartOldChainsHoldBackMoreThanYoungOnes) {
  Fixture fixture;
  const std::vector<Owner> owners = first_owners(64);
  for (const Owner owner : owners) {
    for (std::uint64_t i = 0; i < kStripes * kRecords / 16; ++i) fixture.put(owner, i, i);
  }
  fixture.restart(true, owners);
  fixture.log().checkpoint();
  const std::uint64_t before = fixture.log().bytes_used();
  for (std::size_t i = 0; i < owners.size() / 2; ++i) {
    const Owner oldest = fixture.log().oldest()->owner.load();
    EXPECT_LE(oldest, i + 1 + kStripes * 2) << "no finer than a segment of each stripe";
    fixture.end(oldest);
  }
  fixture.log().checkpoint();
  fixture.log().reclaim();
  EXPECT_LE(fixture.log().bytes_used(), before / 2 + 2 * kStripes * kSegmentSize);
  EXPECT_EQ(fixture.problems(), Strings{});
}

TEST(LogSpace, GenerationsWithoutEnd) {
  Fixture fixture;
  fixture.put(1, 1, 1);
  // More than there can be while the first one has a chain.
  for (std::uint64_t i = 0; i < (Marks::kMaxMarks + 50) * kRecords; ++i) {
    if (i % (4 * kRecords) == 0) fixture.log().checkpoint();
    if (!fixture.log().admit()) break;  // the first chain holds back everything
    fixture.log().append(fixture.chain(2), Type::put, i, i);
    fixture.end(2);
  }
  EXPECT_EQ(fixture.read(1), (Changes{{Type::put, 1, 1}}));
  EXPECT_EQ(fixture.problems(), Strings{});
  fixture.end(1);
  for (std::uint64_t i = 0; i < 2 * Marks::kMaxMarks * kRecords; ++i)
    fixture.put(2 + i % 100, i, i);
  EXPECT_EQ(fixture.problems(), Strings{});
}

TEST(LogSpace, TheRingIsUsedAgainAndOldRecordsDontPass) {
  Fixture fixture;
  constexpr Owner owner = 5;
  const std::uint64_t rounds = (kSegmentsPerStripe + 5) * kRecords;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    fixture.put_at(5, owner, i, ~i);
    if (i % kRecords != 0) continue;
    fixture.log().checkpoint();
    fixture.clean();  // before the stripe is full, and others are used
  }
  EXPECT_GT(fixture.chain(owner).head.load(), (kSegmentsPerStripe + 1) * kSegmentSize);
  const Changes before = fixture.read(owner);
  EXPECT_EQ(before.back(), (Change{Type::put, rounds - 1, Word(~(rounds - 1))}));
  fixture.restart(true, {owner});
  EXPECT_EQ(fixture.read(owner), before);
  EXPECT_LT(segments_of(fixture, 5), 10u);
  EXPECT_EQ(fixture.problems(), Strings{});
}

TEST(LogSpace, FreesSegmentsThatACrashLeftLater) {
  Fixture fixture;
  constexpr Owner owner = 1;
  for (std::uint64_t i = 0; i < 3 * kRecords; ++i) fixture.put_at(1, owner, i, i);
  fixture.log().go_to(1);
  fixture.end(owner);
  fixture.log().checkpoint();
  // What a reclamation does before it frees the first segment.
  StripeLayout& stripe = fixture.header().stripes[1];
  fixture.pool().pm().publish(stripe.start, first_position(1) + 3 * kSegmentSize);
  EXPECT_GE(segments_of(fixture, 1), 4u);
  fixture.restart(true, {owner});
  EXPECT_EQ(fixture.problems(), Strings{});
  EXPECT_GE(segments_of(fixture, 1), 4u);
  fixture.log().reclaim();
  EXPECT_LE(segments_of(fixture, 1), Stripe::kMinSegments);
  EXPECT_EQ(fixture.problems(), Strings{});
  fixture.put_at(1, owner, 1, 2);
  EXPECT_EQ(fixture.read(owner), (Changes{{Type::put, 1, 2}}));
}

TEST(LogSpace, InAFullPoolCleaningMakesRoom) {
  Fixture fixture(std::uint64_t{512} << 20, pool::kGrowthUnit);
  constexpr Owner owner = 6;
  std::uint64_t appended = 0;
  const auto fill = [&] {
    for (; fixture.log().admit(); ++appended)
      fixture.log().append(fixture.chain(owner), Type::put, 1, 2);
  };
  testing_files::expect_error(Errc::out_of_space, "", fill);
  EXPECT_GT(appended, 100 * kRecords);
  EXPECT_EQ(fixture.problems(), Strings{});
  fixture.end(owner);
  fixture.log().checkpoint();
  fixture.log().reclaim();
  fixture.pool().allocator().reclaim();
  EXPECT_TRUE(fixture.log().admit());
  fixture.put(owner, 5, 6);
  fixture.restart(true, {owner});
  EXPECT_EQ(fixture.read(owner), (Changes{{Type::put, 5, 6}}));
  EXPECT_EQ(fixture.problems(), Strings{});
}

TEST(LogSpace, DestroyFreesEverything) {
  Fixture fixture;
  for (Owner owner = 1; owner < 3000; ++owner) fixture.put(owner, owner, owner);
  fixture.log().checkpoint();
  for (Owner owner = 1; owner < 5000; ++owner) fixture.put(owner, owner, owner);
  EXPECT_GT(fixture.log().pm_bytes(), 6 * kSegmentSize);
  fixture.open_log();
  drop(fixture.pool(), fixture.word());
  EXPECT_EQ(fixture.word(), 0u);
  EXPECT_EQ(pool::allocated_blocks(fixture.pool()), std::vector<pm::Offset>{});
  drop(fixture.pool(), fixture.word());  // once more is nothing
  fixture.create_log();
  fixture.open_log();
  EXPECT_EQ(fixture.log().appended(), 0u);
}

TEST(LogSpace, ResumesAnInterruptedDestruction) {
  Fixture fixture;
  for (Owner owner = 1; owner < 100; ++owner) fixture.put(owner, owner, owner);
  fixture.log().checkpoint();
  const Position head = fixture.chain(1).head.load();
  fixture.open_log();
  Header& header = fixture.header();
  free_from(fixture.pool(), header.checkpoint);
  free_from(fixture.pool(), header.stripes[stripe_of_position(head)].segments[1]);
  drop(fixture.pool(), fixture.word());
  EXPECT_EQ(pool::allocated_blocks(fixture.pool()), std::vector<pm::Offset>{});
}

}  // namespace
}  // namespace perdix::detail::wal
