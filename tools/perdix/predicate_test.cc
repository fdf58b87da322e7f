#include "perdix/predicate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <perdix/error.h>

#include "perdix/elf_values.h"

namespace perdix::tool {
namespace {

using testing::HasSubstr;
using Op = ElfPredicate::Op;

const std::vector<ElfColumn> kColumns = {{"i", ElfType::int32},     {"l", ElfType::int64},
                                         {"g", ElfType::float64},   {"day", ElfType::date},
                                         {"mode", ElfType::string}, {"odd name", ElfType::string}};

std::vector<ElfPredicate> parse(std::string_view text) { return parse_predicates(text, kColumns); }

ElfPredicate one(std::string_view text) {
  const auto predicates = parse(text);
  EXPECT_EQ(predicates.size(), 1U) << text;
  return predicates.at(0);
}

void expect_one(std::string_view text, const ElfPredicate& wanted) {
  const ElfPredicate found = one(text);
  EXPECT_EQ(found.column, wanted.column) << text;
  EXPECT_EQ(found.op, wanted.op) << text;
  EXPECT_EQ(found.values, wanted.values) << text;
}

std::string message_of(std::string_view text) {
  try {
    parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
  return "no error";
}

TEST(Predicates, HaveAllOperators) {
  expect_one("i = 1", ElfPredicate::equal("i", 1));
  expect_one("i==-1", ElfPredicate::equal("i", -1));
  expect_one("i<1", ElfPredicate::less("i", 1));
  expect_one("i <= 1", ElfPredicate::at_most("i", 1));
  expect_one("i>1", ElfPredicate::greater("i", 1));
  expect_one("i>=1", ElfPredicate::at_least("i", 1));
  expect_one("i between 1 and 10", ElfPredicate::between("i", 1, 10));
  expect_one("i IN (1,2 , 3)", ElfPredicate::in("i", {1, 2, 3}));
  expect_one("mode prefix A", ElfPredicate::prefix("mode", "A"));
}

TEST(Predicates, TakeValuesByTheColumnsType) {
  expect_one("l = 9000000000", ElfPredicate::equal("l", std::int64_t{9'000'000'000}));
  expect_one("g < 2.5e-1", ElfPredicate::less("g", 0.25));
  expect_one("day = 1970-01-02", ElfPredicate::equal("day", ElfDate{1}));
  expect_one("day = '1969-12-31'", ElfPredicate::equal("day", ElfDate{-1}));
  expect_one("mode = AIR", ElfPredicate::equal("mode", "AIR"));
  expect_one("mode = 7", ElfPredicate::equal("mode", "7"));
}

TEST(Predicates, TakeAnyTextInQuotes) {
  expect_one("mode = ''", ElfPredicate::equal("mode", ""));
  expect_one("mode = 'it''s'", ElfPredicate::equal("mode", "it's"));
  expect_one("mode = 'and'", ElfPredicate::equal("mode", "and"));
  expect_one(R"(mode = 'a\x00\tb')", ElfPredicate::equal("mode", std::string("a\0\tb", 4)));
  expect_one(R"("odd name" = x)", ElfPredicate::equal("odd name", "x"));
}

TEST(Predicates, AreCombinedByAnd) {
  EXPECT_TRUE(parse("").empty());
  EXPECT_TRUE(parse("  \n").empty());
  const auto predicates = parse("i between 1 and 10 AND mode = AIR and g > 1");
  ASSERT_EQ(predicates.size(), 3U);
  EXPECT_EQ(predicates[1].column, "mode");
  EXPECT_EQ(predicates[2].op, Op::greater);
}

TEST(Predicates, SayWhereTheyAreWrong) {
  EXPECT_THAT(message_of("x = 1"), HasSubstr("position 1: there is no column 'x'"));
  EXPECT_THAT(message_of("i = one"), HasSubstr("position 5: column 'i': 'one' is no int32"));
  EXPECT_THAT(message_of("i = 1 or i = 2"), HasSubstr("position 7: 'and' is expected"));
  EXPECT_THAT(message_of("i = 1 and"), HasSubstr("position 10: the name of a column"));
  EXPECT_THAT(message_of("i"), HasSubstr("position 2: one of ="));
  EXPECT_THAT(message_of("i ="), HasSubstr("position 4: a value"));
  EXPECT_THAT(message_of("i = = 1"), HasSubstr("position 5: a value"));
  EXPECT_THAT(message_of("i between 1, 2"), HasSubstr("position 12: 'and'"));
  EXPECT_THAT(message_of("i in 1"), HasSubstr("position 6: a list"));
  EXPECT_THAT(message_of("i in ()"), HasSubstr("position 7: a value"));
  EXPECT_THAT(message_of("i in (1 2)"), HasSubstr("position 9: ','"));
  EXPECT_THAT(message_of("mode = 'open"), HasSubstr("position 8: a quote"));
  EXPECT_THAT(message_of(R"(mode = '\q')"), HasSubstr("position 8: "));
  EXPECT_THAT(message_of("i = 2147483648"), HasSubstr("is no int32"));
}

TEST(ElfValues, DatesAreThoseOfTheCalendar) {
  EXPECT_EQ(to_text(parse_value("0000-01-01", ElfType::date)), "0000-01-01");
  EXPECT_EQ(to_text(parse_value("9999-12-31", ElfType::date)), "9999-12-31");
  EXPECT_EQ(to_text(ElfDate{2932897}), "day 2932897");
  EXPECT_EQ(to_text(ElfDate{-719529}), "day -719529");
  EXPECT_EQ(parse_value("2000-02-29", ElfType::date), ElfValue(ElfDate{11016}));
  for (const char* bad : {"1999-02-29", "1999-13-01", "1999-1-01", "19990101", "1999-01-+1", ""})
    EXPECT_THROW(parse_value(bad, ElfType::date), Error) << bad;
}

TEST(ElfValues, NumbersAreTakenWhole) {
  for (const char* bad : {"", "1 ", " 1", "1x", "+-1", "--1", "0x1"}) {
    EXPECT_THROW(parse_value(bad, ElfType::int32), Error) << bad;
    EXPECT_THROW(parse_value(bad, ElfType::float64), Error) << bad;
  }
  EXPECT_EQ(parse_value("+1", ElfType::int32), ElfValue(1));
  EXPECT_EQ(to_text(parse_value("0.1", ElfType::float64)), "0.1");
  EXPECT_EQ(to_text(ElfValue("a\tb")), "a\\tb");
}

TEST(ElfValues, ColumnsHaveNamesAndTypes) {
  const std::vector<ElfColumn> wanted = {{"a", ElfType::int32}, {"b:c", ElfType::string}};
  EXPECT_EQ(parse_columns("a:int32,b:c:string"), wanted);
  for (const char* bad : {"", "a", "a:", ":int32", "a:int32,", "a:text"})
    EXPECT_THROW(parse_columns(bad), Error) << bad;
}

}  // namespace
}  // namespace perdix::tool
