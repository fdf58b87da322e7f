// SpTree's write buffers by the meter: what an insert costs, and that a budget for some of the
// leaves goes to those that are written to, also when others are from now on.
#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/pool.h>
#include <perdix/sptree.h>

#include "pool/pool_core.h"
#include "testing/meter/meter.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::testing {
namespace {

constexpr std::uint64_t kRecords = 200'000;
constexpr std::uint64_t kRange = ~std::uint64_t{0} / 16;
constexpr std::uint64_t kInsertsPerPhase = 16'000;
constexpr std::uint64_t kBuffer = 576;                                // bytes
constexpr std::uint64_t kBudgetOfSome = kBuffer * kRecords / 88 / 5;  // a fifth of the leaves

struct Index {
  explicit Index(std::uint64_t dram_budget) : tree(pool, "t", index_options(dram_budget)) {}

  static PoolOptions pool_options() {
    PoolOptions options;
    options.durability = Durability::process;
    options.domain = DomainChoice::memory_controller;
    return options;
  }
  static SpTreeOptions index_options(std::uint64_t dram_budget) {
    SpTreeOptions options;
    options.dram_budget = dram_budget;
    return options;
  }

  testing_files::TempDirectory folder{testing_files::memory_directory()};
  Pool pool = Pool::create(folder.path() / "pool", pool_options());
  SpTree<std::uint64_t, std::uint64_t> tree;
};

/// Inserts into one sixteenth of the keys at a time; the media bytes written by the second half of
/// the inserts into each, by when the buffers should be there.
std::vector<std::uint64_t> written_by_a_moving_load(std::uint64_t dram_budget) {
  Meter meter;
  detail::pm::Probe* const before = detail::pm::install_probe(&meter);
  std::vector<std::uint64_t> written;
  {
    Index index(dram_budget);
    auto& tree = index.tree;
    detail::util::Random random(7);
    for (std::uint64_t i = 0; i < kRecords; ++i) tree.insert(random(), i);
    Meter::Kind kind = Meter::kOutside;
    for (const std::uint64_t sixteenth : {3, 11, 6, 0}) {
      ++kind;
      for (std::uint64_t i = 0; i < kInsertsPerPhase; ++i) {
        const std::uint64_t key = sixteenth * kRange + random.below(kRange);
        if (i < kInsertsPerPhase / 2) {
          tree.insert(key, i);
        } else {
          const Meter::Operation operation(meter, kind);
          tree.insert(key, i);
          index.pool.core()->background().drain();  // which belongs to its cost
        }
      }
      written.push_back(meter.traffic(kind).device.media_written);
    }
  }
  detail::pm::install_probe(before);
  return written;
}

/// Lines of PM that are read for lookups of keys that are not there.
std::uint64_t read_for_absent_keys(std::uint64_t dram_budget, std::uint64_t lookups) {
  constexpr Meter::Kind kAbsent = 1;
  Index index(dram_budget);
  detail::util::Random random(7);
  for (std::uint64_t i = 0; i < kRecords; ++i) index.tree.insert(random(), i);
  Meter meter;
  detail::pm::Probe* const before = detail::pm::install_probe(&meter);
  for (std::uint64_t i = 0; i < lookups; ++i) {
    const Meter::Operation operation(meter, kAbsent);
    EXPECT_FALSE(index.tree.contains(random()));
  }
  detail::pm::install_probe(before);
  return meter.traffic(kAbsent).lines_read;
}

TEST(SpTreeTraffic, BuffersSendNoLookupOfAnAbsentKeyToPm) {
  constexpr std::uint64_t kLookups = 100'000;
  const std::uint64_t none = read_for_absent_keys(0, kLookups);
  const std::uint64_t all = read_for_absent_keys(kUnlimited, kLookups);
  EXPECT_GT(all, 0u);
  // The filters and fingerprints have a sixth less: what is in the buffers. (Were that in the
  // filters, too, it would be 87 % of the lines.)
  EXPECT_LT(all * 100, none * 82);
}

TEST(SpTreeTraffic, ABufferedInsertHasOneFenceAndTheBatchThree) {
  constexpr Meter::Kind kFirst = 1, kBuffered = 2, kBatch = 3;
  constexpr std::uint64_t kChanges = 28;  // of a buffer
  Index index(kUnlimited);
  Meter meter;
  detail::pm::Probe* const before = detail::pm::install_probe(&meter);
  for (std::uint64_t key = 0; key < 3 * (kChanges + 1); ++key) {
    const std::uint64_t nth = key % (kChanges + 1);
    // The log's first record also needs a segment.
    const Meter::Operation operation(meter, key == 0          ? kFirst
                                            : nth == kChanges ? kBatch
                                                              : kBuffered);
    index.tree.insert(key, key);
  }
  detail::pm::install_probe(before);
  const Traffic buffered = meter.traffic(kBuffered), batch = meter.traffic(kBatch);
  EXPECT_EQ(buffered.operations, 3 * kChanges - 1);
  EXPECT_EQ(buffered.fences, buffered.operations) << "the record's";
  EXPECT_EQ(buffered.flushes, buffered.operations);
  EXPECT_EQ(batch.operations, 3u);
  EXPECT_EQ(batch.fences, 3 * batch.operations) << "of the pairs, of the commit, of the END";
}

TEST(SpTreeTraffic, TheBudgetFollowsTheLoad) {
  const auto none = written_by_a_moving_load(0);
  const auto some = written_by_a_moving_load(kBudgetOfSome);
  const auto all = written_by_a_moving_load(kUnlimited);
  for (std::size_t phase = 0; phase < none.size(); ++phase) {
    const auto each = [&](std::uint64_t n) {
      return 2.0 * static_cast<double>(n) / kInsertsPerPhase;
    };
    fmt::print(
        "range {}: {:.0f} bytes of media written by an insert without buffers, {:.0f} with "
        "some, {:.0f} with all\n",
        phase, each(none[phase]), each(some[phase]), each(all[phase]));
    ASSERT_LT(all[phase], none[phase] / 2);
    const std::uint64_t saved = none[phase] - std::min(none[phase], some[phase]);
    // Which nodes have a buffer when depends on grace periods, too: some percent up or down.
    EXPECT_GE(saved * 10, (none[phase] - all[phase]) * 7) << "of what buffers for all leaves save";
  }
}

}  // namespace
}  // namespace perdix::testing
