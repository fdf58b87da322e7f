#include "terminal/format.h"

#include <gtest/gtest.h>

#include <perdix/error.h>

namespace perdix::terminal {
namespace {

TEST(Format, NumbersHaveThreeDigits) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(0.0213), "0.0213");
  EXPECT_EQ(format_number(1.237), "1.24");
  EXPECT_EQ(format_number(87.12), "87.1");
  EXPECT_EQ(format_number(653.4), "653");
  EXPECT_EQ(format_number(12345), "12345");
}

TEST(Format, TimesAndSizesHaveUnits) {
  EXPECT_EQ(format_nanoseconds(812), "812 ns");
  EXPECT_EQ(format_nanoseconds(14'200), "14.2 us");
  EXPECT_EQ(format_nanoseconds(3.1e6), "3.10 ms");
  EXPECT_EQ(format_nanoseconds(4.2e12), "4200 s");
  EXPECT_EQ(format_bytes(16 << 20), "16.0 MiB");
  EXPECT_EQ(format_bytes(0), "0 B");
}

TEST(Format, CountsAreGrouped) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(18446744073709551615U), "18,446,744,073,709,551,615");
}

TEST(Parse, CountsArePowersOfAThousand) {
  EXPECT_EQ(parse_count("17"), 17U);
  EXPECT_EQ(parse_count("500k"), 500'000U);
  EXPECT_EQ(parse_count("10M"), 10'000'000U);
}

TEST(Parse, SizesArePowersOf1024) {
  EXPECT_EQ(parse_size("4096"), 4096U);
  EXPECT_EQ(parse_size("64M"), 64U << 20);
  EXPECT_EQ(parse_size("1GiB"), 1U << 30);
}

TEST(Parse, RefusesMalformedCounts) {
  for (const char* text :
       {"", "x", "-1", "1.5M", "10MM", "1z", "18446744073709551616", "99999999999G"}) {
    EXPECT_THROW(parse_count(text), Error) << text;
  }
  for (const char* text : {"", "M", "1MB", "iB"}) EXPECT_THROW(parse_size(text), Error) << text;
}

}  // namespace
}  // namespace perdix::terminal
