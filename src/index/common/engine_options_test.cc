#include "index/common/engine_options.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <perdix/error.h>

namespace perdix::detail::index {
namespace {

struct Sample {
  bool resume_in_background = true;
  std::uint64_t budget = 0;
  std::uint32_t size = 64;
  double share = 0.5;
  Technique technique = Technique::none;
};

constexpr std::array kTable = {
    resume_in_background<Sample>(),
    option<&Sample::budget>("budget", "bytes"),
    option<&Sample::size>("size", "bytes of a part", "at most 100",
                          [](const Sample& o) { return o.size <= 100; }),
    option<&Sample::share>("share", "of the cache"),
    technique<Sample>(),
};
static_assert(is_complete(kTable));

constexpr std::array kTableThatForgetsOne = {kTable[0], kTable[1], kTable[2], kTable[3]};
static_assert(!is_complete(kTableThatForgetsOne));

Sample sample(const std::string& name, const std::string& text) {
  return options_of(kTable, "sample", {.named = {{name, text}}});
}

/// What the error says that follows from one option.
std::string refusal(const std::string& name, const std::string& text) {
  try {
    sample(name, text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
  ADD_FAILURE() << name << "=" << text << " was accepted";
  return {};
}

TEST(EngineOptions, ReadsEachTypeByName) {
  EXPECT_TRUE(sample("resume_in_background", "true").resume_in_background);
  EXPECT_FALSE(sample("resume_in_background", "false").resume_in_background);
  EXPECT_EQ(sample("budget", "17").budget, 17U);
  EXPECT_EQ(sample("budget", "64K").budget, std::uint64_t{64} << 10);
  EXPECT_EQ(sample("budget", "3T").budget, std::uint64_t{3} << 40);
  EXPECT_EQ(sample("budget", "unlimited").budget, kUnlimited);
  EXPECT_EQ(sample("size", "100").size, 100U);
  EXPECT_EQ(sample("share", "0.25").share, 0.25);
  EXPECT_EQ(sample("technique", "boc").technique, Technique::boc);
}

TEST(EngineOptions, KeepsDefaultsAndTheOptionOfAllEngines) {
  const Sample defaults = options_of(kTable, "sample", {});
  EXPECT_TRUE(defaults.resume_in_background);
  EXPECT_EQ(defaults.size, 64U);
  EXPECT_FALSE(options_of(kTable, "sample", {.resume_in_background = false}).resume_in_background);
}

TEST(EngineOptions, RefusesValuesOfOtherTypes) {
  for (const auto& [name, text] : {std::pair("budget", ""),
                                   {"budget", "-1"},
                                   {"budget", "1.5"},
                                   {"budget", "12Q"},
                                   {"budget", "K"},
                                   {"budget", " 1"},
                                   {"budget", "16777216T"},
                                   {"budget", "18446744073709551616"},
                                   {"size", "4294967296"},
                                   {"size", "unlimited"},
                                   {"share", "much"},
                                   {"share", "nan"},
                                   {"share", "inf"},
                                   {"technique", "c"},
                                   {"technique", ""},
                                   {"resume_in_background", "1"}}) {
    const std::string message = refusal(name, text);
    EXPECT_NE(message.find(std::string("sample: ") + name), std::string::npos) << message;
    EXPECT_NE(message.find(std::string("'") + text + "'"), std::string::npos) << message;
  }
}

TEST(EngineOptions, RefusesValuesOutOfRangeAndNamesTheRange) {
  EXPECT_EQ(refusal("size", "101"), "sample: size is 101; it must be at most 100");
}

TEST(EngineOptions, RefusesAnUnknownTechnique) {
  try {
    require_valid(kTable, "sample", Sample{.technique = Technique(7)});
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_STREQ(error.what(), "sample: technique is 7; it must be none, b, bo or boc");
  }
}

TEST(EngineOptions, SaysWhatATextMustBe) {
  for (const char* text : {"64MB", "64m", "18446744073709551616"}) {
    EXPECT_EQ(refusal("budget", text),
              std::string("sample: budget is '") + text +
                  "'; it must be an integer below 2^64, which may end in K, M, G or T");
  }
  EXPECT_EQ(refusal("size", "4G"),
            "sample: size is '4G'; it must be an integer below 2^32, which may end in K, M, G or "
            "T; at most 100");
  EXPECT_EQ(refusal("share", "much"), "sample: share is 'much'; it must be a number");
  EXPECT_EQ(refusal("technique", "c"), "sample: technique is 'c'; it must be none, b, bo or boc");
}

TEST(EngineOptions, RefusesAnUnknownNameAndListsTheKnownOnes) {
  EXPECT_EQ(refusal("sise", "1"),
            "the engine sample has no option 'sise'; it has: resume_in_background, budget, size, "
            "share, technique");
}

TEST(EngineOptions, DescribesEachRowInAFormThatItReads) {
  const std::vector<OptionInfo> all = describe(kTable);
  ASSERT_EQ(all.size(), kTable.size());
  for (const OptionInfo& option : all) EXPECT_NO_THROW(sample(option.name, option.default_value));
  EXPECT_EQ(all[2], (OptionInfo{"size", "integer", "64", "at most 100", "bytes of a part"}));
  EXPECT_EQ(all[3].default_value, "0.5");
  EXPECT_EQ(all[4].default_value, "none");
}

}  // namespace
}  // namespace perdix::detail::index
