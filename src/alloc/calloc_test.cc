#include "alloc/calloc.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "alloc/test_space.h"
#include "epoch/guard.h"
#include "util/random.h"

namespace perdix::detail::alloc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

constexpr std::uint64_t kAllBits = ~std::uint64_t{0};

Errc code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return Errc::unsupported;
}

std::vector<std::string> problems_of(const Calloc& calloc) {
  CheckReport report;
  calloc.check(report);
  return report.problems;
}

class CallocTest : public ::testing::Test {
 protected:
  explicit CallocTest(std::uint64_t max_size = 256 * kMiB) : space_(max_size) {
    Calloc::format(space_);
    open();
  }
  ~CallocTest() override { EXPECT_THAT(problems_of(*calloc_), IsEmpty()); }

  void open() { calloc_ = std::make_unique<Calloc>(space_); }

  /// As after a crash between operations: what was in DRAM is gone.
  void reopen() {
    calloc_.reset();
    open();
  }

  /// Allocates until there is no more space.
  std::vector<Offset> fill(std::size_t bytes) {
    std::vector<Offset> blocks;
    try {
      for (;;) blocks.push_back(allocate(*calloc_, bytes));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::out_of_space);
    }
    std::sort(blocks.begin(), blocks.end());
    return blocks;
  }

  unsigned used_slots() const {
    const View view(space_.base());
    unsigned used = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (const std::uint64_t slot : view.lane(lane).ring) used += slot != 0;
    }
    return used;
  }

  TestSpace space_;
  std::unique_ptr<Calloc> calloc_;
};

// --- Blocks --------------------------------------------------------------------------------------

TEST_F(CallocTest, ANewPoolIsEmpty) {
  EXPECT_THAT(blocks_of(*calloc_), IsEmpty());
  EXPECT_EQ(calloc_->bytes_in_spans(), 0U);
  EXPECT_EQ(calloc_->bytes_allocated(), 0U);
  EXPECT_EQ(space_.size(), kChunkSize);
}

TEST_F(CallocTest, BlocksOfAllSizesAreAllocatedAlignedAndApart) {
  std::map<Offset, std::uint64_t> blocks;
  for (std::uint64_t bytes = 0; bytes < 40 * kMiB; bytes += 1 + bytes / 3) {
    const Offset block = allocate(*calloc_, bytes);
    const std::uint64_t size = calloc_->block_size(block);
    EXPECT_GE(size, bytes);
    EXPECT_EQ(size, Calloc::size_for(bytes));
    for (const std::uint64_t alignment : {16, 32, 64}) {
      if (size % alignment == 0) {
        EXPECT_EQ(block % alignment, 0U) << bytes;
      }
    }
    EXPECT_TRUE(calloc_->validate_block(block, bytes));
    EXPECT_FALSE(calloc_->validate_block(block, size + 1));
    EXPECT_FALSE(calloc_->validate_block(block + 8, 1));
    blocks[block] = size;
  }
  Offset end = kLanesEnd;
  std::uint64_t sum = 0;
  for (const auto& [block, size] : blocks) {
    EXPECT_GE(block, end);
    end = block + size;
    sum += size;
  }
  EXPECT_LE(end, space_.size());
  EXPECT_EQ(calloc_->bytes_allocated(), sum);
  for (int i = 0; i < 2; ++i) {
    std::map<Offset, std::uint64_t> seen;
    calloc_->for_each_allocated([&](Offset block, std::uint64_t size) { seen[block] = size; });
    EXPECT_EQ(seen, blocks);
    reopen();
  }
}

TEST_F(CallocTest, AThousandSmallBlocksTakeFewSpans) {
  for (int i = 0; i < 1000; ++i) allocate(*calloc_, 64);
  EXPECT_EQ(calloc_->bytes_in_spans(), kSpanSize);
  EXPECT_EQ(calloc_->bytes_allocated(), 64000U);
}

TEST_F(CallocTest, BlocksOfOneSizeFollowEachOther) {
  const Offset first = allocate(*calloc_, 1120);
  EXPECT_EQ(allocate(*calloc_, 1120), first + 1120);
  EXPECT_EQ(allocate(*calloc_, 1120), first + 2240);
}

TEST_F(CallocTest, NothingButBlocksValidates) {
  const Offset block = allocate(*calloc_, 100);
  for (const Offset other : {Offset{0}, Offset{64}, kHeaderOffset, kLanesOffset, block - 112,
                             block + 112, block + 1, kChunkSize, kChunkSize + 64, 2 * kChunkSize,
                             ~Offset{0}, kOffsetMask, block | Offset{1} << kOffsetBits}) {
    EXPECT_FALSE(calloc_->validate_block(other, 1)) << std::hex << other;
  }
  deallocate(*calloc_, block);
  EXPECT_EQ(calloc_->block_size(block), 112U);
}

TEST_F(CallocTest, RefusesTooLargeBlocks) {
  Session session = calloc_->session();
  EXPECT_EQ(code_of([&] { session.reserve(kMaxObject + 1); }), Errc::too_large);
  EXPECT_EQ(Calloc::size_for(kMaxObject + 1), 0U);
  EXPECT_NE(session.reserve(1), pm::kNull);
}

TEST(CallocLarge, AValueOfFourGibibytesFits) {
  constexpr std::uint64_t kValue = (std::uint64_t{1} << 32) - 1;
  TestSpace space(std::uint64_t{6} << 30);
  Calloc::format(space);
  Calloc calloc(space);
  const Offset block = allocate(calloc, kValue + 64);
  EXPECT_GE(calloc.block_size(block), kValue + 64);
  EXPECT_LE(block + calloc.block_size(block), space.size());
  EXPECT_EQ(code_of([&] { allocate(calloc, kValue); }), Errc::out_of_space);
  deallocate(calloc, block);
  calloc.reclaim();
  EXPECT_EQ(allocate(calloc, kValue), block);
}

TEST_F(CallocTest, ReusesSpaceOfLargeObjectsForSmallOnes) {
  const Offset large = allocate(*calloc_, 200 * kMiB);
  EXPECT_EQ(calloc_->bytes_in_spans(), 208 * kMiB);
  deallocate(*calloc_, large);
  calloc_->reclaim();
  const std::uint64_t size = space_.size();
  std::set<Offset> blocks;
  for (int i = 0; i < 100; ++i) blocks.insert(allocate(*calloc_, kMiB));
  EXPECT_EQ(blocks.size(), 100U);
  EXPECT_EQ(space_.size(), size);
  reopen();
  EXPECT_THAT(blocks_of(*calloc_), UnorderedElementsAreArray(blocks));
  for (const Offset block : blocks) deallocate(*calloc_, block);
  calloc_->reclaim();
  // Chunks of spans become free chunks, and those of different origin one run.
  EXPECT_EQ(allocate(*calloc_, 200 * kMiB), large);
  EXPECT_EQ(space_.size(), size);
}

TEST_F(CallocTest, SpansWithoutBlocksServeOtherSizes) {
  space_.set_limit(kChunkSize);
  for (const std::size_t bytes : {64, 1120, 100, 30'000, 100'000, 16}) {
    std::vector<Offset> blocks = fill(bytes);
    EXPECT_GT(blocks.size() * Calloc::size_for(bytes), 14 * kMiB) << bytes;
    for (const Offset block : blocks) deallocate(*calloc_, block);
    EXPECT_EQ(calloc_->bytes_allocated(), 0U);
    calloc_->reclaim();
  }
}

// --- Exhaustion ----------------------------------------------------------------------------------

TEST_F(CallocTest, OutOfSpaceIsThrownAndEnds) {
  space_.set_limit(2 * kChunkSize);
  std::vector<Offset> blocks = fill(1120);
  EXPECT_EQ(blocks.size(), (kSpansPerChunk - first_span(0) + kMaxRun) * 58U);
  EXPECT_EQ(code_of([&] { allocate(*calloc_, 17 * kMiB); }), Errc::out_of_space);
  EXPECT_EQ(code_of([&] { allocate(*calloc_, 16); }), Errc::out_of_space);
  deallocate(*calloc_, blocks[7]);
  calloc_->reclaim();
  EXPECT_EQ(allocate(*calloc_, 1120), blocks[7]);
  space_.set_limit(3 * kChunkSize);
  EXPECT_NE(allocate(*calloc_, 16), pm::kNull);
}

TEST_F(CallocTest, OutOfSpaceInASessionChangesNothing) {
  space_.set_limit(kChunkSize);
  const std::vector<Offset> blocks = fill(1120);
  deallocate(*calloc_, blocks[3]);
  calloc_->reclaim();
  {
    Session session = calloc_->session();
    EXPECT_EQ(session.reserve(1120), blocks[3]);
    EXPECT_EQ(code_of([&] { session.reserve(1120); }), Errc::out_of_space);
  }
  EXPECT_EQ(blocks_of(*calloc_).size(), blocks.size() - 1);
  EXPECT_EQ(allocate(*calloc_, 1120), blocks[3]);
}

TEST_F(CallocTest, TheLimitOfThePoolIsOne) {
  fill(8 * kMiB);
  EXPECT_EQ(space_.size(), space_.max_size());
}

// --- Sessions ------------------------------------------------------------------------------------

TEST_F(CallocTest, AnUnloggedOperationNeverHappened) {
  const Offset kept = allocate(*calloc_, 64);
  const std::vector<std::byte> before(space_.base(), space_.base() + kChunkSize);
  Offset reserved = pm::kNull;
  {
    Session session = calloc_->session();
    reserved = session.reserve(64);
    session.free(kept);
    session.reserve(64);
  }
  EXPECT_EQ(std::memcmp(before.data(), space_.base(), kChunkSize), 0);
  EXPECT_EQ(allocate(*calloc_, 64), reserved);
}

TEST_F(CallocTest, AMovedSessionIsTheSameOperation) {
  Session first = calloc_->session();
  const Offset block = first.reserve(64);
  Session second = std::move(first);
  second.log();
  second.finish();
  EXPECT_THAT(blocks_of(*calloc_), ElementsAre(block));
}

TEST_F(CallocTest, AWordThatIsCommittedAlreadyIsDamageAndChangesNothing) {
  const Offset block = allocate(*calloc_, 64);
  {
    Session session = calloc_->session();
    session.reserve(100);
    session.free(block);
    root(space_) = 7;
    EXPECT_EQ(code_of([&] { session.commit_when(root(space_), 3, 3); }), Errc::corrupt);
  }
  EXPECT_THAT(blocks_of(*calloc_), ElementsAre(block));
}

TEST_F(CallocTest, CancelTakesEverythingBack) {
  const Offset old = allocate(*calloc_, space_, 64, root(space_));
  space_.pm().store(root(space_, 1), 5);
  {
    Session session = calloc_->session();
    const Offset block = session.reserve(64);
    session.free(old);
    session.commit_when(root(space_), kAllBits, block);
    session.undo(root(space_, 1), 5);
    session.log();
    space_.pm().store(root(space_, 1), 6);
    session.cancel();
  }
  EXPECT_EQ(root(space_, 1), 5U);
  EXPECT_THAT(blocks_of(*calloc_), ElementsAre(old));
}

TEST_F(CallocTest, AnExceptionAfterTheLogIsResolvedByTheCommitWord) {
  for (const bool commit : {false, true}) {
    root(space_) = 0;
    Offset block = pm::kNull;
    try {
      Session session = calloc_->session();
      block = session.reserve(3000);
      session.commit_when(root(space_), kAllBits, block);
      session.log();
      if (commit) space_.pm().publish(root(space_), block);
      throw std::runtime_error("something else");
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(blocks_of(*calloc_).size(), commit ? 1U : 0U);
  }
}

TEST_F(CallocTest, ReplacingAllocatesAndFreesInOneOperation) {
  Offset block = allocate(*calloc_, space_, 100, root(space_));
  for (int i = 0; i < 1000; ++i) {
    Session session = calloc_->session();
    const Offset next = session.reserve(100);
    EXPECT_NE(next, block);
    session.free(block);
    session.commit_when(root(space_), kAllBits, next);
    session.log();
    space_.pm().publish(root(space_), next);
    session.finish();
    block = next;
    ASSERT_THAT(blocks_of(*calloc_), ElementsAre(block));
  }
}

TEST_F(CallocTest, RefusesToFreeAnythingButBlocks) {
  const Offset block = allocate(*calloc_, 64);
  const Offset run = allocate(*calloc_, 200'000);
  const Offset large = allocate(*calloc_, 20 * kMiB);
  for (const Offset offset : {Offset{0}, Offset{64}, block + 8, run + kSpanSize, large + kChunkSize,
                              large + 64, kHeaderOffset, kChunkSize, std::uint64_t{1} << 47}) {
    Session session = calloc_->session();
    EXPECT_EQ(code_of([&] { session.free(offset); }), Errc::corrupt) << std::hex << offset;
  }
  EXPECT_EQ(blocks_of(*calloc_).size(), 3U);
}

// --- The ring and grace periods ------------------------------------------------------------------

TEST_F(CallocTest, FreedBlocksGoToTheRingAndComeFromItFirst) {
  const Offset first = allocate(*calloc_, 1120);
  const Offset second = allocate(*calloc_, 1120);
  deallocate(*calloc_, first);
  EXPECT_EQ(used_slots(), 1U);
  EXPECT_THAT(blocks_of(*calloc_), ElementsAre(second));
  calloc_->reclaim();
  // The bit of the block stays as it was: only the slot tells that the block was free.
  const View view(space_.base());
  const std::uint64_t bits = view.span(first & ~(kSpanSize - 1)).bitmap[0];
  const Offset other = allocate(*calloc_, 5000);
  deallocate(*calloc_, other);  // makes what has waited long enough available
  EXPECT_EQ(allocate(*calloc_, 1120), first);
  EXPECT_EQ(view.span(first & ~(kSpanSize - 1)).bitmap[0], bits);
  EXPECT_EQ(used_slots(), 1U);
}

TEST_F(CallocTest, AFullRingOverflowsIntoTheBitmap) {
  constexpr unsigned kBlocks = 3 * LaneLayout::kSlots;
  std::vector<Offset> blocks;
  for (unsigned i = 0; i < kBlocks; ++i) blocks.push_back(allocate(*calloc_, 64));
  const epoch::Guard reader;
  for (const Offset block : blocks) deallocate(*calloc_, block);
  EXPECT_EQ(used_slots(), LaneLayout::kSlots);
  EXPECT_THAT(blocks_of(*calloc_), IsEmpty());
  reopen();
  EXPECT_EQ(used_slots(), 0U);
  EXPECT_THAT(blocks_of(*calloc_), IsEmpty());
}

TEST_F(CallocTest, ABlockIsNotUsedAgainWhileAReaderMaySeeIt) {
  space_.set_limit(kChunkSize);
  std::vector<Offset> blocks = fill(30'000);
  const std::set<Offset> freed(blocks.begin(), blocks.begin() + 20);
  {
    const epoch::Guard reader;
    for (const Offset block : freed) deallocate(*calloc_, block);
    EXPECT_EQ(code_of([&] { allocate(*calloc_, 30'000); }), Errc::out_of_space);
    EXPECT_EQ(code_of([&] { allocate(*calloc_, 16); }), Errc::out_of_space);
    EXPECT_EQ(code_of([&] { allocate(*calloc_, 60'000); }), Errc::out_of_space);
  }
  calloc_->reclaim();
  std::set<Offset> again;
  for (std::size_t i = 0; i < freed.size(); ++i) again.insert(allocate(*calloc_, 30'000));
  EXPECT_EQ(again, freed);
}

TEST_F(CallocTest, BlocksThatNoReaderSeesAreFreeAtOnce) {
  space_.set_limit(3 * kChunkSize);
  const epoch::Guard reader;
  for (const std::uint64_t bytes : {std::uint64_t{100}, std::uint64_t{30'000}, 10 * kMiB}) {
    for (const Offset block : fill(bytes)) {
      {
        Session session = calloc_->session();
        session.free_unread(block);
        session.log();
      }
      EXPECT_EQ(allocate(*calloc_, bytes), block);
    }
    for (const Offset block : blocks_of(*calloc_)) deallocate(*calloc_, block);
    reopen();
  }
}

TEST_F(CallocTest, LargeObjectsWaitForReadersToo) {
  space_.set_limit(3 * kChunkSize);
  for (const std::uint64_t bytes : {10 * kMiB, 30 * kMiB}) {
    const Offset object = allocate(*calloc_, bytes);
    {
      const epoch::Guard reader;
      deallocate(*calloc_, object);
      EXPECT_THAT(blocks_of(*calloc_), IsEmpty());
      std::vector<Offset> others = fill(bytes);
      EXPECT_THAT(others, ::testing::Not(::testing::Contains(object)));
      for (const Offset other : others) deallocate(*calloc_, other);
    }
    calloc_->reclaim();
  }
  EXPECT_EQ(fill(30 * kMiB).size(), 1U);
}

// --- Lanes and threads ---------------------------------------------------------------------------

TEST_F(CallocTest, SessionsOfOneThreadUseDifferentLanes) {
  std::vector<Session> sessions;
  std::set<Offset> blocks;
  for (unsigned i = 0; i < kLanes; ++i) {
    sessions.push_back(calloc_->session());
    blocks.insert(sessions.back().reserve(1120));
    sessions.back().log();
  }
  for (Session& session : sessions) session.finish();
  EXPECT_EQ(blocks.size(), kLanes);
  EXPECT_THAT(blocks_of(*calloc_), UnorderedElementsAreArray(blocks));
}

TEST_F(CallocTest, TakesBlocksBackFromLanesBeforeSpaceRunsOut) {
  space_.set_limit(kChunkSize);
  const std::vector<Offset> blocks = fill(30'000);
  // Each session frees on its own lane, and claims a few blocks of other classes.
  for (const Offset block : blocks) deallocate(*calloc_, block);
  calloc_->reclaim();
  {
    std::vector<Session> sessions;
    for (unsigned i = 0; i < 40; ++i) {
      sessions.push_back(calloc_->session());
      sessions.back().reserve(16 + 100 * i);
    }
  }
  Session busy = calloc_->session();  // this thread's first lane, which has all the freed blocks
  EXPECT_EQ(fill(100).size() > 100U, true);
  Session(std::move(busy));
}

TEST_F(CallocTest, ReusesMemoryOfEndedThreads) {
  space_.set_limit(2 * kChunkSize);
  for (int round = 0; round < 20; ++round) {
    std::thread([&] {
      const std::vector<Offset> blocks = fill(1120);
      EXPECT_GT(blocks.size(), 28'000U);
      for (const Offset block : blocks) deallocate(*calloc_, block);
    }).join();
    calloc_->reclaim();
  }
}

// --- Recovery ------------------------------------------------------------------------------------

TEST_F(CallocTest, ACrashIsResolvedByTheCommitWord) {
  const Offset old = allocate(*calloc_, space_, 64, root(space_));
  for (const std::uint64_t bytes : {std::uint64_t{64}, std::uint64_t{100'000}, 20 * kMiB}) {
    for (const bool committed : {false, true}) {
      Session session = calloc_->session();
      const Offset block = session.reserve(bytes);
      session.free(old);
      session.commit_when(root(space_), kOffsetMask, block);
      session.redo(root(space_, 1), 11);
      session.undo(root(space_, 2), 22);
      session.log();
      root(space_, 1) = 1;
      root(space_, 2) = 2;
      root(space_) = committed ? block | std::uint64_t{7} << kOffsetBits : old;
      const auto copy = kill_copy(space_);
      root(space_) = old;
      session.cancel();
      for (int i = 0; i < 2; ++i) {
        const Calloc recovered(*copy);
        EXPECT_THAT(problems_of(recovered), IsEmpty());
        EXPECT_THAT(blocks_of(recovered), ElementsAre(committed ? block : old));
        EXPECT_EQ(root(*copy, 1), committed ? 11U : 1U);
        EXPECT_EQ(root(*copy, 2), committed ? 2U : 22U);
      }
    }
  }
}

TEST_F(CallocTest, WithoutACommitWordTheRecordCommits) {
  const Offset old = allocate(*calloc_, space_, 64, root(space_));
  Session session = calloc_->session();
  const Offset block = session.reserve(64);
  session.free(old);
  session.redo(root(space_), block);
  EXPECT_THAT(blocks_of(Calloc(*kill_copy(space_))), ElementsAre(old));
  session.log();
  const auto copy = kill_copy(space_);
  const Calloc recovered(*copy);
  EXPECT_THAT(blocks_of(recovered), ElementsAre(block));
  EXPECT_EQ(root(*copy), block);
}

TEST_F(CallocTest, HolesOfAnOpenedPoolAreFilledBeforeItGrows) {
  space_.set_limit(4 * kChunkSize);
  std::vector<Offset> blocks = fill(1120);
  for (std::size_t i = 0; i < blocks.size(); i += 2) deallocate(*calloc_, blocks[i]);
  reopen();
  space_.set_limit(space_.max_size());
  for (std::size_t i = 0; i < blocks.size(); i += 2) allocate(*calloc_, 1120);
  EXPECT_TRUE(blocks_of(*calloc_) == blocks);
  EXPECT_EQ(space_.size(), 4 * kChunkSize);
}

TEST_F(CallocTest, ReopeningAgainAndAgainDoesNotGrowThePool) {
  const std::vector<Offset> blocks = fill(1120);
  reopen();
  for (std::size_t i = 0; i < blocks.size(); i += 7) deallocate(*calloc_, blocks[i]);
  space_.set_limit(space_.size());
  for (std::size_t i = 0; i < blocks.size(); i += 7) {
    if (i % 1001 == 0) reopen();
    allocate(*calloc_, 1120);
  }
  EXPECT_TRUE(blocks_of(*calloc_) == blocks);
}

// --- Damage --------------------------------------------------------------------------------------

TEST_F(CallocTest, DamageIsReportedAtOpen) {
  const Offset block = allocate(*calloc_, 64);
  allocate(*calloc_, 40 * kMiB);
  const View view(space_.base());
  const auto expect = [&](Errc errc, std::uint64_t& word, std::uint64_t value) {
    const std::uint64_t before = std::exchange(word, value);
    EXPECT_EQ(code_of([&] { Calloc opened(space_); }), errc);
    word = before;
  };
  expect(Errc::corrupt, view.header().magic, 1);
  expect(Errc::corrupt, view.header().checksum, 1);
  expect(Errc::corrupt, view.header().alloc_num, 0);
  expect(Errc::truncated, view.header().alloc_num, 100);
  expect(Errc::corrupt, view.chunk(0).word, 0);
  expect(Errc::corrupt, view.chunk(1).word, ChunkWord{ChunkKind::large, 0, 70'000}.pack());
  expect(Errc::corrupt, view.lane(9).ring[3], block + 8);
  expect(Errc::corrupt, view.lane(9).ring[3], kAllBits);
}

TEST_F(CallocTest, RefusesARecordThatNamesImpossibleBlocks) {
  const Offset block = allocate(*calloc_, 64);
  const View view(space_.base());
  const auto expect_refused = [&](const Record& record) {
    write_record(space_.pm(), view.lane(5).record, record);
    EXPECT_EQ(code_of([&] { Calloc opened(space_); }), Errc::corrupt);
    clear_record(space_.pm(), view.lane(5).record);
  };
  for (const BlockRef bad :
       {BlockRef{block + 1, 0}, BlockRef{0, 0}, BlockRef{kOffsetMask, 0}, BlockRef{block, 1},
        BlockRef{2 * kSpanSize, 1}, BlockRef{100 * kSpanSize, 200}, BlockRef{64, 1},
        BlockRef{kChunkSize + 64, 1}, BlockRef{200 * kSpanSize + 16, 1}}) {
    Record record;
    record.reserved.push(bad);
    expect_refused(record);
    Record freeing;
    freeing.freed.push(bad);
    expect_refused(freeing);
  }
  for (const Offset word :
       {Offset{4}, kHeaderOffset, kLanesEnd - 8, space_.size(), kOffsetMask - 7}) {
    Record record;
    record.redo = {word, 1};
    expect_refused(record);
    Record conditional;
    conditional.commit_word = word;
    expect_refused(conditional);
  }
}

/// Whatever the bytes, there is an Error or a working allocator.
TEST_F(CallocTest, RandomDamageNeverCrashes) {
  for (std::uint64_t bytes = 1; bytes < kMiB; bytes *= 3) {
    for (int i = 0; i < 5; ++i) allocate(*calloc_, bytes);
  }
  for (int i = 0; i < 2; ++i) allocate(*calloc_, 17 * kMiB);
  const std::vector<Offset> blocks = blocks_of(*calloc_);
  for (std::size_t i = 0; i < blocks.size(); i += 2) deallocate(*calloc_, blocks[i]);
  // Words that mean something: the header's, lanes', span tables', bitmaps'.
  std::vector<Offset> words;
  for (Offset word = kHeaderOffset; word < kHeaderOffset + sizeof(HeaderLayout); word += 8)
    words.push_back(word);
  for (unsigned i = 0; i < 200; ++i) words.push_back(kLanesOffset + i * 8 * 61);
  for (const Offset block : blocks) words.push_back(block & ~(kSpanSize - 1));
  for (unsigned i = 0; i < 72; ++i) words.push_back(kChunkSize + i * 8);

  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    util::Random random(seed);
    const auto copy = kill_copy(space_);
    for (std::uint64_t i = random.below(6) + 1; i > 0; --i) {
      auto& word = copy->at<std::uint64_t>(words[random.below(words.size())]);
      word = random.one_in(2) ? word ^ std::uint64_t{1} << random.below(64) : random();
    }
    try {
      Calloc damaged(*copy);
      problems_of(damaged);
      for (const Offset block : blocks_of(damaged)) EXPECT_TRUE(damaged.validate_block(block, 1));
      for (const std::size_t bytes : {1, 64, 1120, 30'000, 100'000}) allocate(damaged, bytes);
      for (const Offset block : blocks) deallocate(damaged, block);
    } catch (const Error&) {
    }
  }
}

// --- NUMA ----------------------------------------------------------------------------------------

thread_local unsigned node_of_test_thread = 0;
constexpr Topology kTwoNodes{2, [] { return node_of_test_thread; }};

TEST(CallocNuma, ThreadsGetBlocksOfTheirNode) {
  TestSpace space(64 * kMiB);
  Calloc::format(space);
  const View view(space.base());
  Offset first = pm::kNull;
  Offset second = pm::kNull;
  {
    Calloc calloc(space, kTwoNodes);
    node_of_test_thread = 0;
    first = allocate(calloc, 1120);
    node_of_test_thread = 1;
    second = allocate(calloc, 1120);
    EXPECT_EQ(ChunkWord::unpack(view.chunk(chunk_of(first)).word).node, 0);
    EXPECT_EQ(ChunkWord::unpack(view.chunk(chunk_of(second)).word).node, 1);
  }
  Calloc calloc(space, kTwoNodes);
  EXPECT_EQ(chunk_of(allocate(calloc, 1120)), chunk_of(second));
  EXPECT_EQ(chunk_of(allocate(calloc, 100'000)), chunk_of(second));
  node_of_test_thread = 0;
  EXPECT_EQ(chunk_of(allocate(calloc, 1120)), chunk_of(first));
  EXPECT_EQ(space.size(), 2 * kChunkSize);
}

TEST(CallocNuma, UsesSpaceOfOtherNodesWhenItsOwnRunsOut) {
  TestSpace space(32 * kMiB);
  Calloc::format(space);
  Calloc calloc(space, kTwoNodes);
  node_of_test_thread = 1;
  std::set<std::uint64_t> chunks;
  try {
    for (;;) chunks.insert(chunk_of(allocate(calloc, 30'000)));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::out_of_space);
  }
  EXPECT_THAT(chunks, ElementsAre(0, 1));
}

TEST(CallocNuma, APoolOfALargerMachineOpensOnASmallerOne) {
  TestSpace space(64 * kMiB);
  Calloc::format(space);
  {
    Calloc calloc(space, kTwoNodes);
    node_of_test_thread = 1;
    allocate(calloc, 1120);
  }
  Calloc calloc(space, Topology{});
  allocate(calloc, 1120);
  EXPECT_EQ(space.size(), 2 * kChunkSize);
  EXPECT_THAT(problems_of(calloc), IsEmpty());
}

TEST(CallocNuma, TheSystemHasNodes) { EXPECT_GE(Topology::system().nodes, 1U); }

TEST_F(CallocTest, NewChunksAreAnnounced) {
  allocate(*calloc_, 64);
  EXPECT_EQ(space_.prepared(), 0U);
  fill(100'000);
  EXPECT_EQ(space_.prepared(), space_.size() - kChunkSize);
}

}  // namespace
}  // namespace perdix::detail::alloc
