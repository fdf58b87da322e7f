#include "ycsb/report.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/median.h"

namespace perdix::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result result_of(const std::string& system, std::vector<double> seconds) {
  Result result;
  result.system = system;
  result.workload = "c";
  for (const double s : seconds) result.rounds.push_back({s, 1000, 0, 42, {}, {}});
  result.latency.record(100);
  return result;
}

Results results_of(std::vector<Result> results) {
  Results all;
  all.config.systems.clear();
  for (const Result& result : results) all.config.systems.push_back(result.system);
  all.config.baseline = "base";
  all.results = std::move(results);
  return all;
}

TEST(Median, IsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
}

TEST(Result, ThroughputIsTheMedianOfTheRounds) {
  const Result result = result_of("x", {1, 2, 10});
  EXPECT_DOUBLE_EQ(result.operations_per_second(), 500);
  EXPECT_DOUBLE_EQ(result.nanoseconds_per_operation(), 2e6);
}

TEST(Result, NanosecondsPerOperationAreThoseOfOneThread) {
  Result result = result_of("x", {1});
  result.threads = 2;
  EXPECT_DOUBLE_EQ(result.nanoseconds_per_operation(), 2e6);
}

TEST(Report, RatioIsTheMedianOfTheRatiosWithinRounds) {
  const Results all = results_of({result_of("base", {1, 2, 4}), result_of("x", {1, 1, 1})});
  EXPECT_DOUBLE_EQ(*all.ratio(all.results[1]), 2);
  EXPECT_DOUBLE_EQ(*all.ratio(all.results[0]), 1);
}

TEST(Report, HasNoRatioWithoutABaseline) {
  const Results all = results_of({result_of("x", {1})});
  EXPECT_FALSE(all.ratio(all.results[0]).has_value());
}

TEST(Report, ScalingIsTheMedianOfTheRatiosToTheFirstNumberOfThreads) {
  Results all = results_of({result_of("x", {1, 2, 4}), result_of("x", {1, 1, 1})});
  all.config.systems = {"x"};
  all.config.threads = {1, 2};
  all.results[1].threads = 2;
  EXPECT_FALSE(all.scaling(all.results[0]).has_value());
  EXPECT_DOUBLE_EQ(*all.scaling(all.results[1]), 2);
  EXPECT_EQ(to_json(report_of(all))["results"][1]["ratio_to_first_threads"], 2.0);
  std::ostringstream text;
  for (const Figure& figure : summaries_of(all)) write_table(text, figure);
  EXPECT_THAT(text.str(), HasSubstr("the same by that of 1 thread\n"));
  EXPECT_THAT(text.str(), HasSubstr("2.00x"));
}

TEST(Report, NamesWrongAnswersAndDisagreement) {
  Results all = results_of({result_of("base", {1}), result_of("x", {1})});
  EXPECT_THAT(all.problems(), IsEmpty());
  all.results[1].rounds[0].wrong = 3;
  all.results[1].rounds[0].checksum = 43;
  EXPECT_THAT(all.problems(), ElementsAre(HasSubstr("3 operations"), HasSubstr("different")));
}

TEST(Report, NamesLostRecords) {
  Results all = results_of({result_of("x", {1})});
  all.results[0].workload = "reopen";
  all.results[0].rounds[0].reopened.emplace().lost = 2;
  EXPECT_THAT(all.problems(), ElementsAre(HasSubstr("2 records")));
}

TEST(Report, IsCompleteInEachForm) {
  Results all = results_of({result_of("base", {1}), result_of("x", {2})});
  all.systems.push_back({"x", false, "flags <of> x", 1});
  all.results[1].counts = {
      {"get", "PM lines read", 3000, 0},
      {"scan", "PM lines read", 50, 10},
  };
  const Report report = report_of(all);
  std::ostringstream text;
  write_text(text, report);
  EXPECT_THAT(text.str(), HasSubstr("flags <of> x"));
  EXPECT_THAT(text.str(), HasSubstr("0.500x"));
  EXPECT_THAT(text.str(), HasSubstr("PM lines read"));
  std::ostringstream html;
  write_html(html, report);
  EXPECT_THAT(html.str(), HasSubstr("flags &lt;of&gt; x"));
  EXPECT_THAT(html.str(), HasSubstr("<svg"));
  const nlohmann::json json = to_json(report);
  EXPECT_EQ(json["results"][1]["ratio_to_baseline"], 0.5);
  EXPECT_EQ(json["results"][1]["per_operation"]["get"]["PM lines read"], 3.0);
  EXPECT_EQ(json["results"][1]["per_operation"]["scan"]["PM lines read"], 5.0);
  EXPECT_EQ(json["systems"][0]["settings"], "flags <of> x");
}

}  // namespace
}  // namespace perdix::bench
