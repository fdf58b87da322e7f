#include "ycsb/report.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

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

Report report_of(std::vector<Result> results) {
  Report report;
  report.config.systems.clear();
  for (const Result& result : results) report.config.systems.push_back(result.system);
  report.config.baseline = "base";
  report.results = std::move(results);
  return report;
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
  const Report report = report_of({result_of("base", {1, 2, 4}), result_of("x", {1, 1, 1})});
  EXPECT_DOUBLE_EQ(*report.ratio(report.results[1]), 2);
  EXPECT_DOUBLE_EQ(*report.ratio(report.results[0]), 1);
}

TEST(Report, HasNoRatioWithoutABaseline) {
  const Report report = report_of({result_of("x", {1})});
  EXPECT_FALSE(report.ratio(report.results[0]).has_value());
}

TEST(Report, ScalingIsTheMedianOfTheRatiosToTheFirstNumberOfThreads) {
  Report report = report_of({result_of("x", {1, 2, 4}), result_of("x", {1, 1, 1})});
  report.config.systems = {"x"};
  report.config.threads = {1, 2};
  report.results[1].threads = 2;
  EXPECT_FALSE(report.scaling(report.results[0]).has_value());
  EXPECT_DOUBLE_EQ(*report.scaling(report.results[1]), 2);
  EXPECT_EQ(to_json(report)["results"][1]["ratio_to_first_threads"], 2.0);
  std::ostringstream text;
  write_summary(text, report);
  EXPECT_THAT(text.str(), HasSubstr("the same by that of 1 thread\n"));
  EXPECT_THAT(text.str(), HasSubstr("2.00x"));
}

TEST(Report, NamesWrongAnswersAndDisagreement) {
  Report report = report_of({result_of("base", {1}), result_of("x", {1})});
  EXPECT_THAT(report.problems(), IsEmpty());
  report.results[1].rounds[0].wrong = 3;
  report.results[1].rounds[0].checksum = 43;
  EXPECT_THAT(report.problems(), ElementsAre(HasSubstr("3 operations"), HasSubstr("different")));
}

TEST(Report, NamesLostRecords) {
  Report report = report_of({result_of("x", {1})});
  report.results[0].workload = "reopen";
  report.results[0].rounds[0].reopened.emplace().lost = 2;
  EXPECT_THAT(report.problems(), ElementsAre(HasSubstr("2 records")));
}

TEST(Report, IsCompleteInEachForm) {
  Report report = report_of({result_of("base", {1}), result_of("x", {2})});
  report.notes.push_back({"x", 1, "flags <of> x"});
  report.results[1].counts = {
      {"get", "PM lines read", 3000, 0},
      {"scan", "PM lines read", 50, 10},
  };
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
