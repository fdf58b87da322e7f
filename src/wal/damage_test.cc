// A log whose bytes are wrong gives Errc::corrupt, or other records, and never a fault.
#include <functional>

#include "util/random.h"
#include "wal/header.h"
#include "wal/log.h"
#include "wal/owned_block.h"
#include "wal/test_log.h"

namespace perdix::detail::wal {
namespace {

using testing_files::expect_error;

class LogDamage : public ::testing::Test {
 protected:
  LogDamage() {
    fixture_.log().go_to(kStripe);
    for (Owner owner = 1; owner <= kOwners; ++owner) fixture_.put(owner, owner, 1);
    fixture_.log().checkpoint();
    for (Owner owner = 1; owner <= kOwners; owner += 3) fixture_.put(owner, owner, 2);
  }

  Header& header() { return fixture_.header(); }
  /// The one that has all records.
  StripeLayout& stripe() { return header().stripes[kStripe]; }
  TableHeader& table() { return *fixture_.pool().at<TableHeader>(header().checkpoint); }
  TableEntry* entries() { return reinterpret_cast<TableEntry*>(&table() + 1); }

  /// As a restart does: opens, and reads all chains.
  void use() {
    fixture_.open_log();
    for (Owner owner = 0; owner <= kOwners + 1; ++owner) {
      if (const Position head = fixture_.log().surviving(owner)) fixture_.read_from(owner, head);
    }
  }

  void expect_corrupt() {
    expect_error(Errc::corrupt, "the log of an index is damaged", [this] { use(); });
  }

  static constexpr Owner kOwners = 60;
  static constexpr unsigned kStripe = 2;
  Fixture fixture_;
};

TEST_F(LogDamage, WithoutDamageThereIsNone) {
  use();
  EXPECT_EQ(fixture_.problems(), std::vector<std::string>{});
}

TEST_F(LogDamage, InTheHeader) {
  for (std::uint64_t* word : {&header().magic, &header().seed, &header().checksum}) {
    *word ^= 4;
    expect_corrupt();
    *word ^= 4;
  }
  for (const pm::Offset offset :
       {pm::Offset{0}, pm::Offset{8}, fixture_.word() + 64, ~pm::Offset{0}}) {
    expect_error(Errc::corrupt, "the log of an index is damaged",
                 [&] { checked_header(fixture_.pool(), offset); });
  }
}

TEST_F(LogDamage, InAWordOfTheRing) {
  pm::Offset& word = stripe().segments[1];
  const pm::Offset sound = word;
  const pm::Offset other = stripe().segments[2];
  for (const pm::Offset wrong : {pm::Offset{0}, pm::Offset{64}, sound + 64, sound + 1, other,
                                 fixture_.word(), fixture_.pool().size(), ~pm::Offset{0}}) {
    word = wrong;
    expect_corrupt();
  }
  word = sound;
  stripe().segments[700] = sound;  // of no position
  expect_corrupt();
}

TEST_F(LogDamage, InAStart) {
  Position& start = stripe().start;
  const Position sound = start;
  for (const Position wrong : {Position{0}, sound + 1, sound + 32, sound - kSegmentSize,
                               sound + kSegmentSize, ~Position{0}, std::uint64_t{1} << 63}) {
    start = wrong;
    expect_corrupt();
  }
}

TEST_F(LogDamage, InTheTablesHeader) {
  for (std::uint64_t* word : {&table().magic, &table().seed, &table().capacity, &table().count,
                              &table().tails[5], &table().checksum}) {
    *word ^= 64;
    expect_corrupt();
    *word ^= 64;
  }
  const pm::Offset sound = header().checkpoint;
  for (const pm::Offset wrong : {pm::Offset{16}, sound + 16, sound + 1, fixture_.word(),
                                 stripe().segments[1], ~pm::Offset{0}}) {
    header().checkpoint = wrong;
    expect_corrupt();
  }
}

TEST_F(LogDamage, InATableWithTheRightChecksum) {
  const TableHeader sound = table();
  const auto forge = [&](const std::function<void(TableHeader&)>& change) {
    table() = sound;
    change(table());
    table().checksum = util::checksum(&table(), offsetof(TableHeader, checksum));
    expect_corrupt();
  };
  forge([](TableHeader& t) { t.capacity = std::uint64_t{1} << 40; });
  forge([](TableHeader& t) { t.capacity = 0; });
  forge([](TableHeader& t) { t.capacity = 3; });
  forge([](TableHeader& t) { t.count = t.capacity; });
  forge([](TableHeader& t) { t.tails[1] = 0; });
  forge([](TableHeader& t) { t.tails[1] += 1; });
  forge([](TableHeader& t) { t.tails[1] += std::uint64_t{1} << 40; });
  forge([](TableHeader& t) { t.tails[1] += kSegmentSize * 3; });
}

TEST_F(LogDamage, InAnEntry) {
  // An owner that has no record behind the table, or the entry doesn't matter.
  TableEntry* entry = entries();
  while (entry->owner == 0 || entry->owner % 3 == 1) ++entry;
  const Position sound = entry->head;
  for (const Position wrong : {Position{1}, sound + 1, sound + 32, sound + kSegmentSize, sound - 1,
                               ~Position{0}, std::uint64_t{1} << 62}) {
    entry->head = wrong;
    expect_corrupt();
  }
}

TEST_F(LogDamage, ATableWithoutFreeEntriesEndsASearch) {
  for (std::uint64_t i = 0; i < table().capacity; ++i) {
    if (entries()[i].owner == 0) entries()[i].owner = kMaxOwner - i;
  }
  fixture_.open_log();
  EXPECT_EQ(fixture_.log().surviving(kOwners + 1000), 0u);
}

TEST_F(LogDamage, InARecordBeforeTheCheckpoint) {
  fixture_.record_at(fixture_.chain(2).head.load()).key ^= 1;
  expect_corrupt();
}

// With checks that fit: of a file that was made to do harm.
TEST_F(LogDamage, AChainThatLeadsBackToItselfEnds) {
  const Position position = fixture_.chain(2).head.load(), other = fixture_.chain(3).head.load();
  const auto link = [&](Position from, Position to) {
    Record& record = fixture_.record_at(from);
    record.where = pack_where(2, Type::put, link_to(to));
    record.check = check_of(header().seed, from, record.where, record.key, record.value);
  };
  link(position, other);
  link(other, position);
  fixture_.open_log();
  std::uint64_t records = 0;
  fixture_.log().follow(2, position, [&](Type, Word, Word, Position) { ++records; });
  EXPECT_EQ(records, kStripes * kRingSize / sizeof(Record));
}

TEST_F(LogDamage, ADropRefusesWordsThatOwnNothing) {
  fixture_.open_log();
  header().stripes[7].segments[9] = fixture_.word() + 64;
  expect_error(Errc::corrupt, "the log of an index is damaged",
               [this] { drop(fixture_.pool(), fixture_.word()); });
}

TEST_F(LogDamage, AnyBytesAnywhere) {
  const std::uint64_t seed = 20260101;
  util::Random random(seed);
  const pm::Offset log = fixture_.word();
  std::vector<char> sound(sizeof(Header));
  std::memcpy(sound.data(), fixture_.pool().at<char>(log), sound.size());
  for (int i = 0; i < 3000; ++i) {
    // Mostly where something lies: the begin of the header, the begins of the stripes.
    const std::uint64_t stripe = random.below(kStripes) * sizeof(StripeLayout);
    const std::uint64_t at = sizeof(std::uint64_t) * random.below(random.one_in(2) ? 8 : 12);
    auto* word = fixture_.pool().at<std::uint64_t>(log + at + (at < 64 ? 0 : stripe));
    *word = random.one_in(2) ? random() >> random.below(64)
                             : *word ^ std::uint64_t{1} << random.below(64);
    try {
      use();
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Errc::corrupt) << "seed " << seed << ", round " << i;
    }
    std::memcpy(fixture_.pool().at<char>(log), sound.data(), sound.size());
  }
  use();
}

}  // namespace
}  // namespace perdix::detail::wal
