#include "perdix/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perdix/test_source.h"

namespace perdix::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Fields = std::vector<std::string>;

std::vector<Row> rows_of(const std::string& text, RowFormat format, std::size_t piece = 1 << 20) {
  TextSource source(text, piece);
  RowReader reader(source, "file", format);
  std::vector<Row> rows;
  for (Row row; reader.next(row);) rows.push_back(row);
  return rows;
}

std::string message_of(const std::string& text, RowFormat format) {
  try {
    rows_of(text, format);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Tsv, SplitsAtTabs) {
  const auto rows = rows_of("a\t1\nb\t\t3\nlast", RowFormat::tsv);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_THAT(rows[0].fields, ElementsAre("a", "1"));
  EXPECT_THAT(rows[1].fields, ElementsAre("b", "", "3"));
  EXPECT_THAT(rows[2].fields, ElementsAre("last"));
}

TEST(Tsv, SkipsEmptyLinesButCountsThem) {
  const auto rows = rows_of("\na\r\n\r\n\nb\n\t\n", RowFormat::tsv);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].line, 2U);
  EXPECT_THAT(rows[0].fields, ElementsAre("a"));
  EXPECT_EQ(rows[1].line, 5U);
  EXPECT_THAT(rows[2].fields, ElementsAre("", ""));
}

TEST(Tsv, LeavesQuotesAndBackslashesAlone) {
  EXPECT_THAT(rows_of("\"a\\t\"\n", RowFormat::tsv)[0].fields, ElementsAre("\"a\\t\""));
}

TEST(Csv, QuotedFieldsHoldAnything) {
  const auto rows =
      rows_of("\"a,b\",\"say \"\"hi\"\"\",\"two\r\nlines\",\"\"\r\nnext,row\n", RowFormat::csv);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[0].fields, ElementsAre("a,b", "say \"hi\"", "two\r\nlines", ""));
  EXPECT_THAT(rows[1].fields, ElementsAre("next", "row"));
  EXPECT_EQ(rows[1].line, 3U);
}

TEST(Csv, SkipsAByteOrderMark) {
  EXPECT_THAT(rows_of("\xef\xbb\xbfkey,value\n", RowFormat::csv)[0].fields,
              ElementsAre("key", "value"));
}

TEST(Csv, TrailingCommaIsAnEmptyField) {
  EXPECT_THAT(rows_of("a,\n", RowFormat::csv)[0].fields, ElementsAre("a", ""));
}

TEST(Csv, NamesTheLineOfABadQuote) {
  EXPECT_THAT(message_of("a,b\nc,\"open\nand on\n", RowFormat::csv), HasSubstr("file:2: a quote"));
  EXPECT_THAT(message_of("a,b\n\"c\"d,e\n", RowFormat::csv), HasSubstr("file:2: text after"));
}

TEST(Rows, NulBytesAreNoText) {
  const std::string text("a\tb\nc\0d\n", 8);
  EXPECT_THAT(message_of(text, RowFormat::tsv), HasSubstr("file:2: a NUL byte"));
  EXPECT_THAT(message_of(text, RowFormat::csv), HasSubstr("file:2: a NUL byte"));
}

TEST(Rows, BlockBordersDoNotShow) {
  const std::string text = "key,\"quo\"\"ted\nfield\",x\r\n\r\nsecond,row,\n";
  const auto whole = rows_of(text, RowFormat::csv);
  for (std::size_t piece = 1; piece < text.size(); ++piece) {
    const auto rows = rows_of(text, RowFormat::csv, piece);
    ASSERT_EQ(rows.size(), whole.size()) << piece;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i].fields, whole[i].fields) << piece;
      EXPECT_EQ(rows[i].line, whole[i].line) << piece;
    }
  }
}

TEST(Rows, EmptyInputHasNone) {
  EXPECT_TRUE(rows_of("", RowFormat::tsv).empty());
  EXPECT_TRUE(rows_of("\n\n", RowFormat::csv).empty());
}

}  // namespace
}  // namespace perdix::tool
