// One log, step by step: what chains hold, and what is found of them after a restart.
#include "wal/log.h"

#include <array>

#include "wal/test_log.h"

namespace perdix::detail::wal {
namespace {

TEST(Log, IsEmptyWhenNew) {
  Rig rig;
  EXPECT_EQ(rig.log().appended(), 0u);
  EXPECT_EQ(rig.log().bytes_used(), 0u);
  EXPECT_EQ(rig.log().oldest(), nullptr);
  EXPECT_FALSE(rig.log().crowded());
  rig.restart(true, {});
  for (Owner owner = 1; owner < 100; ++owner) EXPECT_EQ(rig.log().surviving(owner), 0u);
  EXPECT_EQ(rig.problems(), Strings{});
}

TEST(Log, RecordsOfAChainSurviveInTheirOrder) {
  Rig rig;
  rig.put(7, 1, 10);
  rig.put(kMaxOwner, 0, ~Word{0}, Type::erase_key);
  rig.put(7, ~Word{0}, 0, Type::erase_slot);
  rig.put(7, 1, 11);
  for (const bool whole : {false, true}) {
    rig.restart(whole, {7, kMaxOwner});
    EXPECT_EQ(rig.read(7),
              (Changes{{Type::put, 1, 10}, {Type::erase_slot, ~Word{0}, 0}, {Type::put, 1, 11}}));
    EXPECT_EQ(rig.read(kMaxOwner), (Changes{{Type::erase_key, 0, ~Word{0}}}));
    EXPECT_EQ(rig.problems(), Strings{});
  }
}

TEST(Log, AnAdoptedChainGoesOn) {
  Rig rig;
  rig.put(7, 1, 10);
  rig.restart(true, {7});
  rig.put(7, 2, 20);
  rig.restart(true, {7});
  EXPECT_EQ(rig.read(7), (Changes{{Type::put, 1, 10}, {Type::put, 2, 20}}));
}

TEST(Log, AnEndClosesTheChainAndAnotherBegins) {
  Rig rig;
  rig.put(7, 1, 10);
  rig.put(8, 1, 80);
  rig.end(7);
  rig.open_log();
  EXPECT_EQ(rig.log().surviving(7), 0u);
  EXPECT_NE(rig.log().surviving(8), 0u);
  rig.put(7, 3, 30);
  rig.restart(false, {7, 8});
  EXPECT_EQ(rig.read(7), (Changes{{Type::put, 3, 30}}));
}

TEST(Log, AChainGoesFromStripeToStripe) {
  Rig rig;
  Changes changes;
  for (Word key = 0; key < 40; ++key) {
    rig.put_at(key * 5 % kStripes, 7, key, ~key);
    rig.put_at(key % kStripes, 8, key, key);
    changes.emplace_back(Type::put, key, ~key);
    if (key == 20) rig.log().checkpoint();
  }
  rig.restart(true, {7, 8});
  EXPECT_EQ(rig.read(7), changes);
  EXPECT_EQ(rig.read(8).size(), 40u);
  EXPECT_EQ(rig.problems(), Strings{});
  rig.put_at(3, 7, 40, 0);
  changes.emplace_back(Type::put, 40, 0);
  rig.log().go_to(5);
  rig.end(8);
  rig.restart(true, {7, 8});
  EXPECT_EQ(rig.read(7), changes);
  EXPECT_EQ(rig.read(8), Changes{});
  EXPECT_EQ(rig.problems(), Strings{});
}

// Stripes have no order in time: what came last must be found by the links.
TEST(Log, ChainsOfOneOwnerInDifferentStripes) {
  for (const auto& [first, second, third] :
       {std::array{0u, 1u, 2u}, {2u, 1u, 0u}, {1u, 2u, 0u}, {0u, 0u, 1u}, {1u, 0u, 0u}}) {
    Rig rig;
    rig.put_at(first, 7, 1, 10);
    rig.log().go_to(second);
    rig.end(7);
    rig.put_at(third, 7, 2, 20);
    rig.put_at(first, 7, 3, 30);
    rig.restart(true, {7});
    EXPECT_EQ(rig.read(7), (Changes{{Type::put, 2, 20}, {Type::put, 3, 30}}));
    rig.log().go_to(second);
    rig.end(7);
    rig.open_log();
    EXPECT_EQ(rig.log().surviving(7), 0u);
  }
}

TEST(Log, AFullSegmentSendsTheThreadToTheNextStripe) {
  Rig rig;
  rig.log().go_to(6);
  std::array<std::uint64_t, kStripes> records{};
  for (Word key = 0; key < 3 * kSegmentSize / sizeof(Record); ++key) {
    rig.put(7, key, 0);
    ++records.at(stripe_of_position(rig.chain(7).head.load()));
  }
  constexpr std::uint64_t kWhole = kSegmentSize / sizeof(Record);
  EXPECT_EQ(records, (std::array<std::uint64_t, kStripes>{kWhole, 0, 0, 0, 0, 0, kWhole, kWhole}));
}

TEST(Log, TheEndOfAnEmptyChainIsNoRecord) {
  Rig rig;
  rig.log().end(rig.chain(7));
  EXPECT_EQ(rig.log().appended(), 0u);
}

TEST(Log, FollowingStopsWhenItIsTold) {
  Rig rig;
  for (Word key = 0; key < 5; ++key) rig.put(7, key, 0);
  Word last = 99;
  rig.log().follow(7, rig.chain(7).head.load(), [&](Type, Word key, Word, Position) {
    last = key;
    return key > 2;
  });
  EXPECT_EQ(last, 2u);
}

/// Of chains that aren't there it makes nothing.
TEST(Log, PrefetchingFollowsAllChainsToTheirEnds) {
  Rig rig;
  for (Word key = 0; key < 20; ++key) {
    rig.put(7, key, key);
    rig.put_at(key % kStripes, 8, key, key);
  }
  rig.open_log();
  const Position head = rig.log().surviving(7);
  const Position behind = head + 1000 * sizeof(Record);
  std::array<Position, 5> heads = {head, 0, rig.log().surviving(8), behind, rig.log().surviving(9)};
  rig.log().prefetch(heads);
  EXPECT_EQ(heads, (std::array<Position, 5>{}));
  rig.restart(false, {7, 8});
  EXPECT_EQ(rig.read(7).size(), 20U);
  EXPECT_EQ(rig.read(8).size(), 20U);
  EXPECT_EQ(rig.problems(), Strings{});
}

TEST(Log, ATornRecordIsTheTailAndIsOverwritten) {
  for (std::uint64_t Record::*word :
       {&Record::where, &Record::key, &Record::value, &Record::check}) {
    Rig rig;
    rig.put(7, 1, 10);
    rig.put(7, 2, 20);
    const Position torn = rig.chain(7).head.load();
    rig.record_at(torn).*word ^= 1;
    rig.restart(true, {7});
    EXPECT_EQ(rig.read(7), (Changes{{Type::put, 1, 10}}));
    rig.put(7, 3, 30);
    EXPECT_EQ(rig.chain(7).head.load(), torn);
    rig.restart(true, {7});
    EXPECT_EQ(rig.read(7), (Changes{{Type::put, 1, 10}, {Type::put, 3, 30}}));
  }
}

TEST(Log, ACopyOfAValidRecordPassesNowhereElse) {
  Rig rig;
  rig.put(7, 1, 10);
  const Position position = rig.chain(7).head.load();
  const Record copy = rig.record_at(position);
  rig.put_at((stripe_of_position(position) + 1) % kStripes, 8, 1, 10);
  // The next of the same stripe, and the same of another one.
  rig.record_at(position + sizeof(Record)) = copy;
  rig.record_at(rig.chain(8).head.load()) = copy;
  rig.restart(true, {7, 8});
  EXPECT_EQ(rig.read(7), (Changes{{Type::put, 1, 10}}));
  EXPECT_EQ(rig.read(8), Changes{});
}

TEST(Log, RecordsOfAnotherLogDontPass) {
  Rig rig;
  for (Word key = 0; key < 10; ++key) rig.put(7, key, 0);
  const Position first = rig.chain(7).first.load();
  const std::vector<Record> records(&rig.record_at(first), &rig.record_at(first) + 10);
  rig.open_log();
  destroy(rig.pool(), rig.word());
  rig.create_log();
  rig.open_log();
  rig.log().go_to(stripe_of_position(first));
  ASSERT_TRUE(rig.log().admit());  // the same positions, with whatever bytes
  std::copy(records.begin(), records.end(), &rig.record_at(first));
  rig.open_log();
  EXPECT_EQ(rig.log().surviving(7), 0u);
  EXPECT_EQ(rig.log().appended(), 0u);
}

TEST(Log, ARecordCommitsWhatItsSessionAllocatedAndFreed) {
  Rig rig;
  std::vector<pm::Offset> blobs;
  const auto put_blob = [&](pm::Offset old) {
    ASSERT_TRUE(rig.log().admit());
    alloc::Session session = rig.pool().allocator().session();
    blobs.push_back(session.reserve(100));
    if (old != pm::kNull) session.free(old);
    rig.log().append(rig.chain(7), Type::put, 1, blobs.back(), session);
  };
  put_blob(pm::kNull);
  EXPECT_EQ(rig.problems({blobs[0]}), Strings{});
  put_blob(blobs[0]);
  EXPECT_EQ(rig.problems({blobs[1]}), Strings{});
  rig.restart(true, {7});
  EXPECT_EQ(rig.read(7), (Changes{{Type::put, 1, blobs[0]}, {Type::put, 1, blobs[1]}}));
  EXPECT_EQ(rig.problems({blobs[1]}), Strings{});
}

TEST(Log, WithoutRoomNothingHappensToTheSession) {
  Rig rig;
  ASSERT_TRUE(rig.log().admit());
  Chain& chain = rig.chain(7);
  // Nobody is asked for admission.
  const auto fill = [&] {
    for (;;) rig.log().append(chain, Type::put, 1, 2);
  };
  testing_files::expect_error(Errc::out_of_space, "", fill);
  const std::uint64_t appended = rig.log().appended();
  const auto put_blob = [&] {
    alloc::Session session = rig.pool().allocator().session();
    session.reserve(100);
    rig.log().append(chain, Type::put, 1, 2, session);
  };
  testing_files::expect_error(Errc::out_of_space, "", put_blob);
  EXPECT_EQ(rig.log().appended(), appended);
  EXPECT_EQ(rig.problems(), Strings{});
  EXPECT_TRUE(rig.log().admit());
  rig.put(7, 3, 4);
  rig.restart(true, {7});
  EXPECT_EQ(rig.read(7).back(), (Change{Type::put, 3, 4}));
}

TEST(Log, ACheckpointAndWhatFollowsAreTheTruth) {
  Rig rig;
  for (Owner owner = 1; owner <= 6; ++owner) rig.put(owner, owner, 1);
  rig.end(1);
  rig.log().checkpoint();
  rig.end(2);        // in the table, and closed behind it
  rig.put(3, 3, 2);  // in the table, and newer behind it
  rig.put(1, 1, 2);  // closed before the table, and begun behind it
  rig.put(7, 7, 1);  // unknown to the table
  rig.end(4);        // closed and begun behind it
  rig.put(4, 4, 2);
  rig.restart(true, {1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(rig.read(1), (Changes{{Type::put, 1, 2}}));
  EXPECT_EQ(rig.read(2), Changes{});
  EXPECT_EQ(rig.read(3), (Changes{{Type::put, 3, 1}, {Type::put, 3, 2}}));
  EXPECT_EQ(rig.read(4), (Changes{{Type::put, 4, 2}}));
  EXPECT_EQ(rig.read(5), (Changes{{Type::put, 5, 1}}));
  EXPECT_EQ(rig.read(7), (Changes{{Type::put, 7, 1}}));
  EXPECT_EQ(rig.problems(), Strings{});
}

TEST(Log, ACheckpointReplacesTheOneBefore) {
  Rig rig;
  rig.put(1, 1, 1);
  rig.log().checkpoint();
  const pm::Offset first = rig.header().checkpoint;
  rig.log().checkpoint();  // nothing was appended
  EXPECT_EQ(rig.header().checkpoint, first);
  rig.put(1, 1, 2);
  rig.log().checkpoint();
  EXPECT_NE(rig.header().checkpoint, first);
  EXPECT_EQ(rig.problems(), Strings{});
}

TEST(Log, BeforeItIsResumedNothingIsReclaimedOrCheckpointed) {
  Rig rig;
  rig.put(1, 1, 1);
  rig.open_log();
  EXPECT_TRUE(rig.log().resuming());
  rig.put(2, 2, 2);
  rig.log().checkpoint();
  rig.log().reclaim();
  EXPECT_FALSE(rig.log().checkpoint_due());
  EXPECT_EQ(rig.header().checkpoint, pm::kNull);
  rig.adopt(1);
  rig.log().resumed();
  EXPECT_FALSE(rig.log().resuming());
  EXPECT_EQ(rig.log().surviving(1), 0u);
  EXPECT_EQ(rig.read(1), (Changes{{Type::put, 1, 1}}));
  EXPECT_EQ(rig.log().oldest(), &rig.chain(1)) << "adopted later, but older";
  EXPECT_EQ(rig.problems(), Strings{});
}

TEST(Log, AdoptedChainsAreOrderedByAge) {
  Rig rig;
  const std::vector<Owner> owners = first_owners(4);
  for (const Owner owner : owners) rig.put(owner, 1, 1);
  rig.open_log();
  for (const std::size_t i : {2, 0, 3, 1}) rig.adopt(owners[i]);
  rig.end(owners[1]);  // and begun again, which makes it the newest
  rig.put(owners[1], 2, 2);
  rig.end(owners[3]);
  rig.log().resumed();
  for (const std::size_t i : {0, 2, 1}) {
    ASSERT_NE(rig.log().oldest(), nullptr);
    EXPECT_EQ(rig.log().oldest()->owner.load(), owners[i]);
    rig.end(owners[i]);
  }
  EXPECT_EQ(rig.log().oldest(), nullptr);
}

}  // namespace
}  // namespace perdix::detail::wal
