#include "figure/names.h"

#include <gtest/gtest.h>

#include <perdix/error.h>

namespace perdix::bench {
namespace {

const Names kNames = {{"records", Value("1M")}, {"cached", 25.0},
                      {"threads", 2.0},         {"one", 1.0},
                      {"log", Value("256KiB")}, {"domain", Value("eADR")}};

TEST(Value, IsANumberOrAWord) {
  EXPECT_EQ(Value("60k").number(), 60'000);
  EXPECT_EQ(Value("256KiB").number(), 262'144);
  EXPECT_EQ(Value("0.99").number(), 0.99);
  EXPECT_EQ(Value("1e3").number(), 1000);
  for (const char* word : {"eADR", "many", "", "k", "1x", "-5"})
    EXPECT_FALSE(Value(word).is_number()) << word;
  EXPECT_EQ(Value("10M").text(), "10000000");
  EXPECT_EQ(Value("0.5").text(), "0.5");
  EXPECT_EQ(Value("").text(), "");
  EXPECT_NE(Value(""), Value(0.0));
}

TEST(Evaluate, ComputesInTheUsualOrder) {
  EXPECT_EQ(evaluate("records", kNames), 1e6);
  EXPECT_EQ(evaluate("records * cached / 100", kNames), 250'000);
  EXPECT_EQ(evaluate("records + 2 * 500k", kNames), 2e6);
  EXPECT_EQ(evaluate("100 - cached - 5", kNames), 70);
  EXPECT_EQ(evaluate("100 / 5 / 2", kNames), 10);
}

TEST(Evaluate, RefusesNonNumbers) {
  for (const char* wrong : {"nosuch", "domain", "2 *", "", "records records", "(1)"})
    EXPECT_THROW(evaluate(wrong, kNames), Error) << wrong;
}

TEST(ValueOrWord, TakesAnExpressionForANumber) {
  EXPECT_EQ(value_or_word("records / 4", kNames), Value(250'000));
  EXPECT_EQ(value_or_word("domain", kNames), Value("eADR"));
  EXPECT_EQ(value_or_word(", no log", kNames).text(), ", no log");
}

TEST(Expand, FormatsNumbers) {
  EXPECT_EQ(expand("{records:count} pairs", kNames), "1,000,000 pairs");
  EXPECT_EQ(expand("logs of {log:bytes}", kNames), "logs of 256 KiB");
  EXPECT_EQ(expand("{cached:percent} of {domain:percent}", kNames), "25 % of eADR");
  EXPECT_EQ(expand("{records * cached / 100:count}, {threads}", kNames), "250,000, 2 threads");
  EXPECT_EQ(expand("nothing", kNames), "nothing");
}

TEST(Expand, RefusesUnknownNames) {
  for (const char* wrong : {"{nosuch}", "{records:hex}", "{records"})
    EXPECT_THROW(expand(wrong, kNames), Error) << wrong;
}

}  // namespace
}  // namespace perdix::bench
