// Operational logs that wrap: a record that has no room at the end of its ring begins the next
// round.
#include <cstdint>
#include <map>
#include <string>

#include "index/tips/test_tips.h"

namespace perdix::detail::index::tips {
namespace {

/// Values of many sizes, so that rounds end with some room without a record. What an earlier round
/// has left there looks like a record of four gigabytes.
std::string long_value(U64 i) {
  return std::string(1 + i * 977 % 7000, '\xff') + std::to_string(i);
}

using LongValues = Tips<perdix::tips::Hash, U64, std::string>;

class LogRounds : public TipsTest {
 protected:
  static constexpr U64 kKeys = 100;

  /// Some 100 KiB, of a ring of 256.
  static void write(LongValues& index, U64 round) {
    for (U64 i = 30 * round; i < 30 * (round + 1); ++i) index.put(i % kKeys, long_value(i));
  }
  /// After this many rounds.
  static void expect_all(const LongValues& index, U64 rounds) {
    for (U64 i = 30 * rounds - kKeys; i < 30 * rounds; ++i)
      EXPECT_EQ(index.get(i % kKeys), long_value(i)) << i;
    const CheckReport report = index.check();
    EXPECT_TRUE(report.ok()) << report.problems.front();
  }
};

TEST_F(LogRounds, AreReclaimed) {
  constexpr U64 kRounds = 60;
  const Pool pool = open();
  {
    LongValues index(pool, "t", small_logs());
    for (U64 round = 0; round < kRounds; ++round) {
      write(index, round);
      index.size();  // replays
    }
    expect_all(index, kRounds);
  }
  EXPECT_TRUE(pool.check().ok());
}

TEST_F(LogRounds, AreFoundAfterADeath) {
  constexpr U64 kRounds = 40;
  for (U64 round = 0; round < kRounds; ++round) {
    die_after([&](const Pool& pool) {
      auto* const index = new LongValues(pool, "t", small_logs());  // never closed
      write(*index, round);
    });
  }
  const Pool pool = open();
  expect_all(LongValues(pool, "t"), kRounds);
  EXPECT_TRUE(pool.check().ok());
}

}  // namespace
}  // namespace perdix::detail::index::tips
