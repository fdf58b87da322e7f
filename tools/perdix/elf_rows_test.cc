#include "perdix/elf_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <perdix/error.h>

namespace perdix::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<ElfColumn> kTwoColumns = {{"n", ElfType::int32}, {"s", ElfType::string}};

template <class T>
std::vector<T> values(const ElfRows& rows, std::size_t column) {
  const auto span = std::get<std::span<const T>>(rows.data()[column]);
  return {span.begin(), span.end()};
}

std::string message_of(ElfRows& rows, const std::vector<std::string>& fields) {
  try {
    rows.add({1, fields});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ElfRows, TakesColumnsByPlace) {
  ElfRows rows(kTwoColumns);
  rows.add({1, {"1", "a"}});
  rows.add({2, {"-2", ""}});
  EXPECT_EQ(rows.size(), 2U);
  EXPECT_THAT(values<std::int32_t>(rows, 0), ElementsAre(1, -2));
  EXPECT_THAT(values<std::string>(rows, 1), ElementsAre("a", ""));
}

TEST(ElfRows, TakesColumnsByName) {
  ElfRows rows(kTwoColumns);
  rows.take_names({1, {"x", "s", "n"}});
  rows.add({2, {"ignored", "a", "1"}});
  EXPECT_THAT(values<std::int32_t>(rows, 0), ElementsAre(1));
  EXPECT_THAT(values<std::string>(rows, 1), ElementsAre("a"));
  EXPECT_THAT(message_of(rows, {"a", "1"}), HasSubstr("2 columns, and 3 are wanted"));
  EXPECT_THROW(ElfRows(kTwoColumns).take_names({1, {"n"}}), Error);
  EXPECT_THROW(ElfRows(kTwoColumns).take_names({1, {"n", "s", "s"}}), Error);
  ElfRows(kTwoColumns).take_names({1, {"x", "n", "s", "x"}});
}

TEST(ElfRows, RefusesBadRows) {
  ElfRows rows(kTwoColumns);
  EXPECT_THAT(message_of(rows, {"1"}), HasSubstr("1 columns, and 2 are wanted"));
  EXPECT_THAT(message_of(rows, {"x", "a"}), HasSubstr("column 'n': 'x' is no int32"));
  EXPECT_EQ(rows.size(), 0U);
}

}  // namespace
}  // namespace perdix::tool
