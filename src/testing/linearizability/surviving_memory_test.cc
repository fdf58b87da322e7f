#include "testing/linearizability/surviving_memory.h"

#include <array>
#include <cstring>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace perdix::testing {
namespace {

struct Region {
  alignas(64) std::array<std::uint64_t, 32> words{};

  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words)); }

  void store(SurvivingMemory& memory, std::size_t word, std::uint64_t value) {
    words[word] = value;
    memory.wrote(&words[word], 8);
  }

  /// What the word may be after a crash, by many draws.
  static std::set<std::uint64_t> outcomes(const SurvivingMemory& memory, std::size_t word) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      detail::util::Random random(seed);
      std::uint64_t value = 0;
      std::memcpy(&value, memory.image(random).read(8 * word, 8).data(), 8);
      seen.insert(value);
    }
    return seen;
  }
};

using Values = std::set<std::uint64_t>;

TEST(SurvivingMemory, KeepsEverythingWhereCachesSurvive) {
  Region region;
  SurvivingMemory memory(region.bytes(), false);
  region.store(memory, 3, 7);
  EXPECT_EQ(Region::outcomes(memory, 3), Values{7});
}

TEST(SurvivingMemory, AStoreIsDurableOnceItWasFlushedAndFenced) {
  Region region;
  SurvivingMemory memory(region.bytes(), true);
  region.store(memory, 3, 7);
  EXPECT_EQ(Region::outcomes(memory, 3), (Values{0, 7}));
  memory.flushed(&region.words[3], 8);
  EXPECT_EQ(Region::outcomes(memory, 3), (Values{0, 7})) << "no fence yet";
  memory.fenced();
  EXPECT_EQ(Region::outcomes(memory, 3), Values{7});
  region.store(memory, 3, 8);
  EXPECT_EQ(Region::outcomes(memory, 3), (Values{7, 8}));
}

TEST(SurvivingMemory, AStoreAfterTheFlushIsNotCovered) {
  Region region;
  SurvivingMemory memory(region.bytes(), true);
  region.store(memory, 3, 7);
  memory.flushed(&region.words[3], 8);
  region.store(memory, 4, 8);  // in the same line
  memory.fenced();
  EXPECT_EQ(Region::outcomes(memory, 3), Values{7});
  EXPECT_EQ(Region::outcomes(memory, 4), (Values{0, 8}));
}

TEST(SurvivingMemory, AFenceIsOfItsThread) {
  Region region;
  SurvivingMemory memory(region.bytes(), true);
  region.store(memory, 3, 7);
  memory.flushed(&region.words[3], 8);
  std::thread([&] { memory.fenced(); }).join();
  EXPECT_EQ(Region::outcomes(memory, 3), (Values{0, 7}));
}

TEST(SurvivingMemory, LosesTheStoresOfAMissedFlush) {
  Region region;
  SurvivingMemory memory(region.bytes(), true);
  region.store(memory, 3, 7);
  region.store(memory, 16, 9);  // in another line
  EXPECT_FALSE(memory.misses());
  memory.missed_flush(&region.words[3], 8);
  EXPECT_TRUE(memory.misses());
  EXPECT_EQ(Region::outcomes(memory, 3), Values{0});
  EXPECT_EQ(Region::outcomes(memory, 16), (Values{0, 9}));
  memory.flushed(&region.words[3], 8);
  memory.fenced();
  EXPECT_FALSE(memory.misses()) << "another flush has made up for it";
  EXPECT_EQ(Region::outcomes(memory, 3), Values{7});
}

TEST(SurvivingMemory, LosesTheStoresOfAMissedFence) {
  Region region;
  SurvivingMemory memory(region.bytes(), true);
  region.store(memory, 3, 7);
  memory.missed_fence();
  EXPECT_FALSE(memory.misses()) << "nothing was flushed";
  memory.flushed(&region.words[3], 8);
  memory.missed_fence();
  EXPECT_TRUE(memory.misses());
  EXPECT_EQ(Region::outcomes(memory, 3), Values{0});
  memory.fenced();
  EXPECT_FALSE(memory.misses());
}

TEST(SurvivingMemory, AnOldFlushDoesNotUndoANewerOne) {
  Region region;
  SurvivingMemory memory(region.bytes(), true);
  region.store(memory, 3, 7);
  memory.flushed(&region.words[3], 8);
  std::thread([&] {
    region.store(memory, 3, 8);
    memory.flushed(&region.words[3], 8);
    memory.fenced();
  }).join();
  memory.fenced();
  EXPECT_EQ(Region::outcomes(memory, 3), Values{8});
}

TEST(SurvivingMemory, ACommitIsDurableBeforeItIsThere) {
  Region region;
  SurvivingMemory memory(region.bytes(), true);
  region.store(memory, 3, 7);
  const std::array changes = {detail::pm::set_word(region.words[2], 5),
                              detail::pm::set_word(region.words[9], 6)};
  memory.committed(changes);
  EXPECT_EQ(Region::outcomes(memory, 2), Values{5});
  EXPECT_EQ(Region::outcomes(memory, 9), Values{6});
  EXPECT_EQ(Region::outcomes(memory, 3), Values{7}) << "in the line of a change";
  region.store(memory, 10, 1);
  memory.flushed(&region.words[10], 8);
  memory.fenced();
  EXPECT_EQ(Region::outcomes(memory, 9), Values{6}) << "another thread persists the line meanwhile";
  for (const detail::pm::Change& change : changes) {
    detail::pm::make(change);
    memory.made(change);
  }
  region.store(memory, 2, 4);
  EXPECT_EQ(Region::outcomes(memory, 2), (Values{4, 5}));
}

TEST(SurvivingMemory, WhatIsFlushedForAllWaitsForAFenceThatHasSomethingToDo) {
  Region region;
  SurvivingMemory memory(region.bytes(), true);
  region.store(memory, 3, 7);
  memory.flushed_for_all(&region.words[3], 8);
  std::thread([&] { memory.fenced(); }).join();
  EXPECT_EQ(Region::outcomes(memory, 3), (Values{0, 7}));
  std::thread([&] {
    memory.flushed(&region.words[20], 8);
    memory.fenced();
  }).join();
  EXPECT_EQ(Region::outcomes(memory, 3), Values{7});
}

TEST(SurvivingMemory, KnowsWhatAnOperationHasReadThatACrashMayUndo) {
  Region region;
  SurvivingMemory memory(region.bytes(), true);
  region.store(memory, 3, 7);
  region.store(memory, 9, 7);
  memory.begin_operation();
  memory.read(&region.words[0], 8);
  EXPECT_EQ(memory.read_in_doubt(), std::vector<std::size_t>{0}) << "by lines";
  std::thread([&] { EXPECT_TRUE(memory.read_in_doubt().empty()); }).join();
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    detail::util::Random random(seed);
    std::uint64_t value = 0;
    std::memcpy(&value, memory.image(random, {0}).read(24, 8).data(), 8);
    EXPECT_EQ(value, 0);
  }
  memory.flushed(&region.words[3], 8);
  memory.fenced();
  EXPECT_TRUE(memory.read_in_doubt().empty());
  region.store(memory, 3, 8);
  memory.begin_operation();
  EXPECT_TRUE(memory.read_in_doubt().empty()) << "it has not read anything";
}

}  // namespace
}  // namespace perdix::testing
