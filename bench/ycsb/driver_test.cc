// Small but complete runs with systems that need no pool, so that a failure is the driver's fault.
#include "ycsb/driver.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <perdix/error.h>

#include "systems/systems.h"
#include "util/test_directory.h"

namespace perdix::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::ThrowsMessage;

class DriverTest : public testing::Test {
 protected:
  DriverTest() {
    config_.systems = {"btree_map", "std_map", "lmdb"};
    config_.records = 2000;
    config_.operations = 1000;
    config_.durability = Durability::process;
    config_.pool_dir = directory_.path();
  }

  const testing_files::TempDirectory directory_;
  Config config_;
};

TEST_F(DriverTest, SystemsAgreeInAllWorkloads) {
  config_.workloads = {"load", "a",      "b",      "c",    "d",       "e",
                       "f",    "absent", "insert", "seek", "scan100", "erase"};
  const Results results = measure(config_);
  EXPECT_THAT(results.problems(), IsEmpty());
  EXPECT_EQ(results.results.size(), 36U);
  EXPECT_NE(results.find("lmdb", "d", 1)->rounds[0].checksum, 0U);
}

TEST_F(DriverTest, AnswersByteKeysOnSeveralThreads) {
  config_.data.shape = {Kind::bytes, Kind::bytes, 24, 100};
  config_.threads = {1, 3};
  config_.workloads = {"a", "d", "e", "erase"};
  EXPECT_THAT(measure(config_).problems(), IsEmpty());
}

/// The systems that fit, in their order.
std::vector<std::string> systems_that(bool (*fit)(const System&)) {
  std::vector<std::string> names;
  for (const System& system : systems()) {
    if (fit(system)) names.push_back(system.name);
  }
  return names;
}

TEST_F(DriverTest, HashTablesAgreeWithMaps) {
  config_.systems = {"btree_map", "tbb", "libcuckoo", "flat_map", "tkrzw"};
  config_.workloads = {"load", "a", "b", "c", "d", "f", "get", "absent", "insert", "erase"};
  EXPECT_THAT(measure(config_).problems(), IsEmpty());
  config_.data.shape = {Kind::u64, Kind::bytes, 8, 40};
  EXPECT_THAT(measure(config_).problems(), IsEmpty());
  config_.data.shape = {Kind::bytes, Kind::bytes, 24, 100};
  EXPECT_THAT(measure(config_).problems(), IsEmpty());
}

TEST_F(DriverTest, XeniumAgreesWithMapsInItsWorkloads) {
  config_.systems = {"btree_map", "xenium"};
  config_.workloads = {"load", "c", "d", "absent", "insert", "erase", "absent"};
  EXPECT_THAT(measure(config_).problems(), IsEmpty());
  config_.data.shape = {Kind::bytes, Kind::bytes, 24, 100};
  EXPECT_THAT(measure(config_).problems(), IsEmpty());
}

TEST_F(DriverTest, HashTablesAnswerSeveralThreads) {
  config_.systems = {"tbb", "libcuckoo", "xenium", "tkrzw"};
  config_.threads = {3};
  config_.workloads = {"d", "insert", "absent", "erase"};
  for (const Shape& shape :
       {Shape{}, Shape{Kind::u64, Kind::bytes, 8, 40}, Shape{Kind::bytes, Kind::bytes, 24, 100}}) {
    config_.data.shape = shape;
    EXPECT_THAT(measure(config_).problems(), IsEmpty());
  }
}

TEST_F(DriverTest, ThreadsReadUpdatesOfOthers) {
  config_.systems = {"tbb", "libcuckoo", "tkrzw"};
  config_.threads = {3};
  config_.workloads = {"a", "f"};
  EXPECT_THAT(measure(config_).problems(), IsEmpty());
}

TEST_F(DriverTest, SystemsReserveSpaceWithPoolSize) {
  config_.systems = {"tbb", "libcuckoo", "flat_map", "xenium"};
  config_.workloads = {"load"};
  config_.pool_size = std::uint64_t{64} << 20;
  config_.records = 100'000;
  const Results results = measure(config_);
  EXPECT_THAT(results.problems(), IsEmpty());
  for (const SystemInfo& system : results.systems)
    EXPECT_THAT(system.settings, Not(HasSubstr("grows"))) << system.name;
}

TEST_F(DriverTest, InsertAheadAddsRecordsInAllSystems) {
  config_.systems = systems_that([](const System&) { return true; });
  config_.workloads = {"insert_ahead", "get"};
  EXPECT_THAT(measure(config_).problems(), IsEmpty());
}

TEST_F(DriverTest, RefusesScansOfUnorderedSystems) {
  const auto without_order = systems_that([](const System& e) { return !e.calls.scan; });
  EXPECT_THAT(without_order, IsSupersetOf({"tbb", "libcuckoo", "xenium", "flat_map", "tkrzw"}));
  for (const std::string& name : without_order) {
    for (const char* workload : {"e", "seek", "scan100"}) {
      config_.systems = {"btree_map", name};
      config_.workloads = {"load", workload};
      EXPECT_THAT([&] { measure(config_); },
                  ThrowsMessage<Error>(AllOf(HasSubstr(name), HasSubstr("no order"),
                                             HasSubstr(std::string("'") + workload + "'"))));
    }
  }
}

TEST_F(DriverTest, OrderedSystemsCanScan) {
  EXPECT_THAT(
      systems_that([](const System& e) { return e.calls.scan; }),
      IsSupersetOf({"sptree", "nbtree", "fastfair", "btree_map", "std_map", "lmdb", "rocksdb"}));
}

TEST_F(DriverTest, RefusesWorkloadsWithoutACallForThem) {
  config_.systems = {"xenium"};
  for (const char* workload : {"a", "f", "update"}) {
    config_.workloads = {workload};
    EXPECT_THAT([&] { measure(config_); }, ThrowsMessage<Error>(HasSubstr("no call that updates")));
  }
}

TEST_F(DriverTest, RefusesMoreThreadsThanASystemSupports) {
  config_.systems = {"flat_map"};
  config_.workloads = {"c"};
  config_.threads = {1, 2};
  EXPECT_THAT([&] { measure(config_); },
              ThrowsMessage<Error>(HasSubstr("flat_map is for 1 thread, not for 2")));
}

TEST_F(DriverTest, LoadsFirstEvenIfNotRequested) {
  config_.workloads = {"c"};
  EXPECT_NE(measure(config_).find("btree_map", "load", 1), nullptr);
}

TEST_F(DriverTest, RunsARoundForEachRepeat) {
  config_.repeat = 3;
  config_.workloads = {"get"};
  const Results results = measure(config_);
  EXPECT_EQ(results.find("lmdb", "get", 1)->rounds.size(), 3U);
  EXPECT_EQ(results.find("lmdb", "get", 1)->operations(), 3000U);
}

TEST_F(DriverTest, ReopensAKilledLmdbWithAllRecords) {
  config_.workloads = {"reopen"};
  const Results results = measure(config_);
  const Result* result = results.find("lmdb", "reopen", 1);
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(result->rounds[0].reopened->lost, 0U);
  EXPECT_GT(result->rounds[0].reopened->first_answer_seconds, 0);
  EXPECT_EQ(results.find("btree_map", "reopen", 1), nullptr) << "nothing of it survives";
}

TEST_F(DriverTest, ReopensAKilledTkrzwWithAllRecords) {
  config_.systems = {"tkrzw"};
  config_.workloads = {"reopen"};
  EXPECT_EQ(measure(config_).find("tkrzw", "reopen", 1)->rounds[0].reopened->lost, 0U);
}

TEST_F(DriverTest, ReopenedSpTreeAnswersBeforeItIsRebuilt) {
  config_.systems = {"sptree", "sptree+buffers"};
  config_.baseline = "sptree";
  config_.workloads = {"reopen"};
  config_.records = 20'000;
  const Results results = measure(config_);
  for (const std::string& system : config_.systems) {
    const Result* result = results.find(system, "reopen", 1);
    ASSERT_NE(result, nullptr);
    const Reopened& reopened = *result->rounds[0].reopened;
    EXPECT_EQ(reopened.lost, 0U);
    EXPECT_LT(reopened.open_seconds, reopened.first_answer_seconds);
    EXPECT_LT(reopened.first_answer_seconds, reopened.resumed_seconds);
  }
}

TEST_F(DriverTest, CreatesPoolsOfTheRequestedSize) {
  constexpr std::uint64_t kSize = std::uint64_t{64} << 20;
  config_.systems = {"sptree"};
  config_.baseline = "sptree";
  config_.workloads = {"load"};
  const auto files = [&] {
    return measure(config_).find("sptree", "load", 1)->rounds[0].footprint.files;
  };
  EXPECT_LT(files(), kSize);
  config_.pool_size = kSize;
  EXPECT_GE(files(), kSize);
}

class CountingMeter final : public Meter {
 public:
  void start() override { ++started_; }
  std::vector<Count> stop() override { return {{"get", "phases", 1000, 0}}; }

  int started_ = 0;
};

TEST_F(DriverTest, ReadsTheMeterAroundEachPhase) {
  CountingMeter meter;
  config_.meter = &meter;
  config_.systems = {"btree_map"};
  config_.workloads = {"get"};
  config_.repeat = 2;
  const Results results = measure(config_);
  EXPECT_EQ(meter.started_, 4);
  EXPECT_EQ(results.find("btree_map", "get", 1)->counts[0].value, 2000U);
}

TEST_F(DriverTest, StopsOnRequest) {
  const std::atomic<bool> stop = true;
  config_.stop = &stop;
  EXPECT_THROW(measure(config_), Cancelled);
}

TEST_F(DriverTest, RefusesNoThreads) {
  config_.threads.clear();
  EXPECT_THROW(measure(config_), Error);
}

TEST_F(DriverTest, LeavesNothingBehind) {
  measure(config_);
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(DriverTest, RefusesImpossibleConfigurations) {
  const auto refused = [this](auto change) {
    Config config = config_;
    change(config);
    EXPECT_THROW(measure(config), Error);
  };
  refused([](Config& c) { c.systems = {"nonesuch"}; });
  refused([](Config& c) { c.workloads = {"nonesuch"}; });
  refused([](Config& c) { c.records = 0; });
  refused([](Config& c) { c.threads = {0}; });
  refused([](Config& c) { c.repeat = 0; });
  refused([](Config& c) { c.data.shape = {Kind::bytes, Kind::bytes, 8, 8}; });
  refused([](Config& c) { c.pool_dir = "/nonexistent/directory"; });
}

}  // namespace
}  // namespace perdix::bench
