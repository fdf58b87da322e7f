#include "ycsb/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include <perdix/error.h>

namespace perdix::bench {
namespace {

constexpr std::uint64_t kRecords = 10'000;
constexpr std::uint64_t kOperations = 100'000;
constexpr std::uint64_t kSeed = 11;

struct Planned {
  std::vector<std::vector<Op>> threads;
  Records after;

  std::vector<Op> all() const {
    std::vector<Op> ops;
    for (const auto& share : threads) ops.insert(ops.end(), share.begin(), share.end());
    return ops;
  }
};

Planned plan_of(std::string_view name, unsigned threads, Records records,
                std::uint64_t operations = kOperations,
                std::optional<Distribution> distribution = std::nullopt) {
  const Workload& workload = find_workload(name);
  Planner planner(operations);
  Planned planned;
  for (const auto share : planner.plan(workload, distribution.value_or(workload.distribution),
                                       operations, threads, kSeed, records)) {
    planned.threads.emplace_back(share.begin(), share.end());
  }
  planned.after = records;
  return planned;
}

TEST(Workloads, SharesAddUpToAHundred) {
  for (const Workload& workload : workloads()) {
    if (workload.phase == PhaseKind::reopen) continue;
    int total = 0;
    for (const std::uint8_t share : workload.percent) total += share;
    EXPECT_EQ(total, 100) << workload.name;
  }
}

TEST(Workloads, AreFoundInAnyCase) {
  EXPECT_EQ(find_workload("A").name, "a");
  EXPECT_THROW(find_workload("z"), Error);
}

TEST(Plan, DrawsKindsInTheirShares) {
  for (const Workload& workload : workloads()) {
    if (workload.phase != PhaseKind::mix || workload.name == "erase") continue;
    std::map<OpKind, std::uint64_t> counts;
    for (const Op& op : plan_of(workload.name, 3, {0, kRecords}).all()) ++counts[op.op()];
    for (std::size_t kind = 0; kind < kOpKinds; ++kind) {
      // The standard deviation of a share is below 0.16 %.
      const double share = static_cast<double>(counts[static_cast<OpKind>(kind)]) / kOperations;
      EXPECT_NEAR(100 * share, workload.percent[kind], 0.8) << workload.name;
    }
  }
}

TEST(Plan, IsTheSameForTheSameSeed) {
  const auto first = plan_of("a", 2, {0, kRecords}).all();
  const auto second = plan_of("a", 2, {0, kRecords}).all();
  const auto same = [](const Op& a, const Op& b) {
    return a.number == b.number && a.kind == b.kind && a.length == b.length;
  };
  EXPECT_TRUE(std::ranges::equal(first, second, same));
}

TEST(Plan, LoadInsertsEachRecordOnce) {
  const Planned planned = plan_of("load", 3, {}, kRecords);
  EXPECT_EQ(planned.after.count(), kRecords);
  std::set<std::uint64_t> numbers;
  for (const Op& op : planned.all()) {
    EXPECT_EQ(op.op(), OpKind::insert);
    numbers.insert(op.number);
  }
  EXPECT_EQ(numbers.size(), kRecords);
  EXPECT_EQ(*numbers.rbegin(), kRecords - 1);
}

TEST(Plan, InsertAheadAddsToAnEmptyIndex) {
  const Planned planned = plan_of("insert_ahead", 2, {}, kRecords);
  EXPECT_EQ(planned.after.count(), kRecords);
  std::set<std::uint64_t> numbers;
  for (const Op& op : planned.all()) {
    EXPECT_EQ(op.op(), OpKind::insert_ahead);
    numbers.insert(op.number);
  }
  EXPECT_EQ(numbers.size(), kRecords);
}

TEST(Plan, ThreadsInsertDisjointNewRecords) {
  const Planned planned = plan_of("d", 4, {0, kRecords});
  std::set<std::uint64_t> inserted;
  std::uint64_t count = 0;
  for (const Op& op : planned.all()) {
    if (op.op() != OpKind::insert) continue;
    ++count;
    inserted.insert(op.number);
  }
  EXPECT_EQ(inserted.size(), count);
  EXPECT_EQ(*inserted.begin(), kRecords);
  EXPECT_EQ(planned.after.next, kRecords + count);
  EXPECT_EQ(*inserted.rbegin(), planned.after.next - 1);
}

TEST(Plan, ThreadsReadOnlyOldRecordsOrTheirOwn) {
  for (const char* name : {"a", "d", "e", "f"}) {
    for (const auto& share : plan_of(name, 3, {100, kRecords}).threads) {
      std::set<std::uint64_t> own;
      for (const Op& op : share) {
        if (op.op() == OpKind::insert) {
          own.insert(op.number);
          continue;
        }
        const bool before = op.number >= 100 && op.number < kRecords;
        ASSERT_TRUE(before || own.contains(op.number)) << name << ' ' << op.number;
      }
    }
  }
}

TEST(Plan, ErasesEachRecordOnceAndThenStops) {
  const Planned planned = plan_of("erase", 2, {5, 1005});
  std::set<std::uint64_t> erased;
  for (const Op& op : planned.all()) erased.insert(op.number);
  EXPECT_EQ(planned.all().size(), 1000);
  EXPECT_EQ(erased.size(), 1000);
  EXPECT_EQ(*erased.begin(), 5);
  EXPECT_EQ(planned.after.count(), 0);
  EXPECT_THROW(plan_of("get", 1, planned.after), Error);
}

TEST(Plan, ScansHaveTheLengthsOfTheWorkload) {
  std::set<std::uint64_t> lengths;
  for (const Op& op : plan_of("e", 1, {0, kRecords}).all()) lengths.insert(op.length);
  EXPECT_EQ(lengths.size(), 100);
  EXPECT_EQ(*lengths.begin(), 1);
  EXPECT_EQ(*lengths.rbegin(), 100);
  for (const Op& op : plan_of("scan100", 1, {0, kRecords}).all()) EXPECT_EQ(op.length, 100);
}

// How often the most frequent records come, as a share of all.
double share_of_most_frequent(const std::vector<Op>& ops, std::size_t how_many) {
  std::map<std::uint64_t, std::uint64_t> counts;
  for (const Op& op : ops) ++counts[op.number];
  std::vector<std::uint64_t> sorted;
  for (const auto& [number, count] : counts) sorted.push_back(count);
  std::ranges::sort(sorted, std::greater<>());
  sorted.resize(std::min(sorted.size(), how_many));
  std::uint64_t total = 0;
  for (const std::uint64_t count : sorted) total += count;
  return static_cast<double>(total) / static_cast<double>(ops.size());
}

TEST(Plan, UniformChoiceHasNoFavourites) {
  const auto ops = plan_of("get", 1, {0, kRecords}, kOperations, Distribution::uniform).all();
  EXPECT_LT(share_of_most_frequent(ops, kRecords / 100), 0.03);
}

TEST(Plan, ZipfianChoiceFavoursAFewScatteredRecords) {
  const auto ops = plan_of("get", 1, {0, kRecords}, kOperations, Distribution::zipfian).all();
  // With theta 0.99 and 10,000 records, the 100 most popular get 53 % of all choices.
  EXPECT_NEAR(share_of_most_frequent(ops, kRecords / 100), 0.53, 0.05);
  double sum = 0;
  for (const Op& op : ops) sum += static_cast<double>(op.number);
  EXPECT_GT(sum / kOperations, kRecords * 0.2) << "popular records must not all be the first";
}

TEST(Plan, LatestChoiceFavoursTheNewest) {
  const auto ops = plan_of("get", 1, {0, kRecords}, kOperations, Distribution::latest).all();
  const auto newest = std::ranges::count_if(
      ops, [](const Op& op) { return op.number >= kRecords - kRecords / 100; });
  EXPECT_NEAR(static_cast<double>(newest) / kOperations, 0.53, 0.05);
}

}  // namespace
}  // namespace perdix::bench
