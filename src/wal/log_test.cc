// One log, step by step: what chains hold, and what is found of them after a restart.
#include "wal/log.h"

#include <array>

#include "wal/test_log.h"

namespace perdix::detail::wal {
namespace {

TEST(Log, IsEmptyWhenNew) {
  Fixture fixture;
  EXPECT_EQ(fixture.log().appended(), 0u);
  EXPECT_EQ(fixture.log().bytes_used(), 0u);
  EXPECT_EQ(fixture.log().oldest(), nullptr);
  EXPECT_FALSE(fixture.log().crowded());
  fixture.restart(true, {});
  for (Owner owner = 1; owner < 100; ++owner) EXPECT_EQ(fixture.log().surviving(owner), 0u);
  EXPECT_EQ(fixture.problems(), Strings{});
}

TEST(Log, RecordsOfAChainSurviveInTheirOrder) {
  Fixture fixture;
  fixture.put(7, 1, 10);
  fixture.put(kMaxOwner, 0, ~Word{0}, Type::erase_key);
  fixture.put(7, ~Word{0}, 0, Type::erase_slot);
  fixture.put(7, 1, 11);
  for (const bool whole : {false, true}) {
    fixture.restart(whole, {7, kMaxOwner});
    EXPECT_EQ(fixture.read(7),
              (Changes{{Type::put, 1, 10}, {Type::erase_slot, ~Word{0}, 0}, {Type::put, 1, 11}}));
    EXPECT_EQ(fixture.read(kMaxOwner), (Changes{{Type::erase_key, 0, ~Word{0}}}));
    EXPECT_EQ(fixture.problems(), Strings{});
  }
}

TEST(Log, AnAdoptedChainGoesOn) {
  Fixture fixture;
  fixture.put(7, 1, 10);
  fixture.restart(true, {7});
  fixture.put(7, 2, 20);
  fixture.restart(true, {7});
  EXPECT_EQ(fixture.read(7), (Changes{{Type::put, 1, 10}, {Type::put, 2, 20}}));
}

TEST(Log, AnEndClosesTheChainAndAnotherBegins) {
  Fixture fixture;
  fixture.put(7, 1, 10);
  fixture.put(8, 1, 80);
  fixture.end(7);
  fixture.open_log();
  EXPECT_EQ(fixture.log().surviving(7), 0u);
  EXPECT_NE(fixture.log().surviving(8), 0u);
  fixture.put(7, 3, 30);
  fixture.restart(false, {7, 8});
  EXPECT_EQ(fixture.read(7), (Changes{{Type::put, 3, 30}}));
}

TEST(Log, AChainGoesFromStripeToStripe) {
  Fixture fixture;
  Changes changes;
  for (Word key = 0; key < 40; ++key) {
    fixture.put_at(key * 5 % kStripes, 7, key, ~key);
    fixture.put_at(key % kStripes, 8, key, key);
    changes.emplace_back(Type::put, key, ~key);
    if (key == 20) fixture.log().checkpoint();
  }
  fixture.restart(true, {7, 8});
  EXPECT_EQ(fixture.read(7), changes);
  EXPECT_EQ(fixture.read(8).size(), 40u);
  EXPECT_EQ(fixture.problems(), Strings{});
  fixture.put_at(3, 7, 40, 0);
  changes.emplace_back(Type::put, 40, 0);
  fixture.log().go_to(5);
  fixture.end(8);
  fixture.restart(true, {7, 8});
  EXPECT_EQ(fixture.read(7), changes);
  EXPECT_EQ(fixture.read(8), Changes{});
  EXPECT_EQ(fixture.problems(), Strings{});
}

// Stripes have no order in time: what came last must be found by the links.
TEST(Log, ChainsOfOneOwnerInDifferentStripes) {
  for (const auto& [first, second, third] :
       {std::array{0u, 1u, 2u}, {2u, 1u, 0u}, {1u, 2u, 0u}, {0u, 0u, 1u}, {1u, 0u, 0u}}) {
    Fixture fixture;
    fixture.put_at(first, 7, 1, 10);
    fixture.log().go_to(second);
    fixture.end(7);
    fixture.put_at(third, 7, 2, 20);
    fixture.put_at(first, 7, 3, 30);
    fixture.restart(true, {7});
    EXPECT_EQ(fixture.read(7), (Changes{{Type::put, 2, 20}, {Type::put, 3, 30}}));
    fixture.log().go_to(second);
    fixture.end(7);
    fixture.open_log();
    EXPECT_EQ(fixture.log().surviving(7), 0u);
  }
}

TEST(Log, AFullSegmentSendsTheThreadToTheNextStripe) {
  Fixture fixture;
  fixture.log().go_to(6);
  std::array<std::uint64_t, kStripes> records{};
  for (Word key = 0; key < 3 * kSegmentSize / sizeof(Record); ++key) {
    fixture.put(7, key, 0);
    ++records.at(stripe_of_position(fixture.chain(7).head.load()));
  }
  constexpr std::uint64_t kWhole = kSegmentSize / sizeof(Record);
  EXPECT_EQ(records, (std::array<std::uint64_t, kStripes>{kWhole, 0, 0, 0, 0, 0, kWhole, kWhole}));
}

TEST(Log, TheEndOfAnEmptyChainIsNoRecord) {
  Fixture fixture;
  fixture.log().end(fixture.chain(7));
  EXPECT_EQ(fixture.log().appended(), 0u);
}

TEST(Log, FollowingStopsWhenItIsTold) {
  Fixture fixture;
  for (Word key = 0; key < 5; ++key) fixture.put(7, key, 0);
  Word last = 99;
  fixture.log().follow(7, fixture.chain(7).head.load(), [&](Type, Word key, Word, Position) {
    last = key;
    return key > 2;
  });
  EXPECT_EQ(last, 2u);
}

/// Of chains that aren't there it makes nothing.
TEST(Log, PrefetchingFollowsAllChainsToTheirEnds) {
  Fixture fixture;
  for (Word key = 0; key < 20; ++key) {
    fixture.put(7, key, key);
    fixture.put_at(key % kStripes, 8, key, key);
  }
  fixture.open_log();
  const Position head = fixture.log().surviving(7);
  const Position behind = head + 1000 * sizeof(Record);
  std::array<Position, 5> heads = {head, 0, fixture.log().surviving(8), behind,
                                   fixture.log().surviving(9)};
  fixture.log().prefetch(heads);
  EXPECT_EQ(heads, (std::array<Position, 5>{}));
  fixture.restart(false, {7, 8});
  EXPECT_EQ(fixture.read(7).size(), 20U);
  EXPECT_EQ(fixture.read(8).size(), 20U);
  EXPECT_EQ(fixture.problems(), Strings{});
}

TEST(Log, ATornRecordIsTheTailAndIsOverwritten) {
  for (std::uint64_t Record::*word :
       {&Record::where, &Record::key, &Record::value, &Record::check}) {
    Fixture fixture;
    fixture.put(7, 1, 10);
    fixture.put(7, 2, 20);
    const Position torn = fixture.chain(7).head.load();
    fixture.record_at(torn).*word ^= 1;
    fixture.restart(true, {7});
    EXPECT_EQ(fixture.read(7), (Changes{{Type::put, 1, 10}}));
    fixture.put(7, 3, 30);
    EXPECT_EQ(fixture.chain(7).head.load(), torn);
    fixture.restart(true, {7});
    EXPECT_EQ(fixture.read(7), (Changes{{Type::put, 1, 10}, {Type::put, 3, 30}}));
  }
}

TEST(Log, ACopyOfAValidRecordPassesNowhereElse) {
  Fixture fixture;
  fixture.put(7, 1, 10);
  const Position position = fixture.chain(7).head.load();
  const Record copy = fixture.record_at(position);
  fixture.put_at((stripe_of_position(position) + 1) % kStripes, 8, 1, 10);
  // The next of the same stripe, and the same of another one.
  fixture.record_at(position + sizeof(Record)) = copy;
  fixture.record_at(fixture.chain(8).head.load()) = copy;
  fixture.restart(true, {7, 8});
  EXPECT_EQ(fixture.read(7), (Changes{{Type::put, 1, 10}}));
  EXPECT_EQ(fixture.read(8), Changes{});
}

TEST(Log, RecordsOfAnotherLogDontPass) {
  Fixture fixture;
  for (Word key = 0; key < 10; ++key) fixture.put(7, key, 0);
  const Position first = fixture.chain(7).first.load();
  const std::vector<Record> records(&fixture.record_at(first), &fixture.record_at(first) + 10);
  fixture.open_log();
  drop(fixture.pool(), fixture.word());
  fixture.create_log();
  fixture.open_log();
  fixture.log().go_to(stripe_of_position(first));
  ASSERT_TRUE(fixture.log().admit());  // the same positions, with whatever bytes
  std::copy(records.begin(), records.end(), &fixture.record_at(first));
  fixture.open_log();
  EXPECT_EQ(fixture.log().surviving(7), 0u);
  EXPECT_EQ(fixture.log().appended(), 0u);
}

TEST(Log, ARecordCommitsWhatItsSessionAllocatedAndFreed) {
  Fixture fixture;
  std::vector<pm::Offset> blobs;
  const auto put_blob = [&](pm::Offset old) {
    ASSERT_TRUE(fixture.log().admit());
    alloc::Session session = fixture.pool().allocator().session();
    blobs.push_back(session.reserve(100));
    if (old != pm::kNull) session.free(old);
    fixture.log().append(fixture.chain(7), Type::put, 1, blobs.back(), session);
  };
  put_blob(pm::kNull);
  EXPECT_EQ(fixture.problems({blobs[0]}), Strings{});
  put_blob(blobs[0]);
  EXPECT_EQ(fixture.problems({blobs[1]}), Strings{});
  fixture.restart(true, {7});
  EXPECT_EQ(fixture.read(7), (Changes{{Type::put, 1, blobs[0]}, {Type::put, 1, blobs[1]}}));
  EXPECT_EQ(fixture.problems({blobs[1]}), Strings{});
}

TEST(Log, WithoutRoomNothingHappensToTheSession) {
  Fixture fixture;
  ASSERT_TRUE(fixture.log().admit());
  Chain& chain = fixture.chain(7);
  // No append asks for admission.
  const auto fill = [&] {
    for (;;) fixture.log().append(chain, Type::put, 1, 2);
  };
  testing_files::expect_error(Errc::out_of_space, "", fill);
  const std::uint64_t appended = fixture.log().appended();
  const auto put_blob = [&] {
    alloc::Session session = fixture.pool().allocator().session();
    session.reserve(100);
    fixture.log().append(chain, Type::put, 1, 2, session);
  };
  testing_files::expect_error(Errc::out_of_space, "", put_blob);
  EXPECT_EQ(fixture.log().appended(), appended);
  EXPECT_EQ(fixture.problems(), Strings{});
  EXPECT_TRUE(fixture.log().admit());
  fixture.put(7, 3, 4);
  fixture.restart(true, {7});
  EXPECT_EQ(fixture.read(7).back(), (Change{Type::put, 3, 4}));
}

TEST(Log, ACheckpointAndWhatFollowsAreTheTruth) {
  Fixture fixture;
  for (Owner owner = 1; owner <= 6; ++owner) fixture.put(owner, owner, 1);
  fixture.end(1);
  fixture.log().checkpoint();
  fixture.end(2);        // in the table, and closed behind it
  fixture.put(3, 3, 2);  // in the table, and newer behind it
  fixture.put(1, 1, 2);  // closed before the table, and begun behind it
  fixture.put(7, 7, 1);  // unknown to the table
  fixture.end(4);        // closed and begun behind it
  fixture.put(4, 4, 2);
  fixture.restart(true, {1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(fixture.read(1), (Changes{{Type::put, 1, 2}}));
  EXPECT_EQ(fixture.read(2), Changes{});
  EXPECT_EQ(fixture.read(3), (Changes{{Type::put, 3, 1}, {Type::put, 3, 2}}));
  EXPECT_EQ(fixture.read(4), (Changes{{Type::put, 4, 2}}));
  EXPECT_EQ(fixture.read(5), (Changes{{Type::put, 5, 1}}));
  EXPECT_EQ(fixture.read(7), (Changes{{Type::put, 7, 1}}));
  EXPECT_EQ(fixture.problems(), Strings{});
}

TEST(Log, ACheckpointReplacesTheOneBefore) {
  Fixture fixture;
  fixture.put(1, 1, 1);
  fixture.log().checkpoint();
  const pm::Offset first = fixture.header().checkpoint;
  fixture.log().checkpoint();  // nothing was appended
  EXPECT_EQ(fixture.header().checkpoint, first);
  fixture.put(1, 1, 2);
  fixture.log().checkpoint();
  EXPECT_NE(fixture.header().checkpoint, first);
  EXPECT_EQ(fixture.problems(), Strings{});
}

TEST(Log, BeforeItIsResumedNothingIsReclaimedOrCheckpointed) {
  Fixture fixture;
  fixture.put(1, 1, 1);
  fixture.open_log();
  EXPECT_TRUE(fixture.log().resuming());
  fixture.put(2, 2, 2);
  fixture.log().checkpoint();
  fixture.log().reclaim();
  EXPECT_FALSE(fixture.log().checkpoint_due());
  EXPECT_EQ(fixture.header().checkpoint, pm::kNull);
  fixture.adopt(1);
  fixture.log().resumed();
  EXPECT_FALSE(fixture.log().resuming());
  EXPECT_EQ(fixture.log().surviving(1), 0u);
  EXPECT_EQ(fixture.read(1), (Changes{{Type::put, 1, 1}}));
  EXPECT_EQ(fixture.log().oldest(), &fixture.chain(1)) << "adopted later, but older";
  EXPECT_EQ(fixture.problems(), Strings{});
}

TEST(Log, AdoptedChainsAreOrderedByAge) {
  Fixture fixture;
  const std::vector<Owner> owners = first_owners(4);
  for (const Owner owner : owners) fixture.put(owner, 1, 1);
  fixture.open_log();
  for (const std::size_t i : {2, 0, 3, 1}) fixture.adopt(owners[i]);
  fixture.end(owners[1]);  // and begun again, which makes it the newest
  fixture.put(owners[1], 2, 2);
  fixture.end(owners[3]);
  fixture.log().resumed();
  for (const std::size_t i : {0, 2, 1}) {
    ASSERT_NE(fixture.log().oldest(), nullptr);
    EXPECT_EQ(fixture.log().oldest()->owner.load(), owners[i]);
    fixture.end(owners[i]);
  }
  EXPECT_EQ(fixture.log().oldest(), nullptr);
}

}  // namespace
}  // namespace perdix::detail::wal
