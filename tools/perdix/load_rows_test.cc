#include "perdix/load_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <perdix/error.h>

#include "perdix/test_source.h"

namespace perdix::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFirst = DumpHeader{"sptree", Kind::bytes, Kind::bytes}.line();

/// What load would store: the keys, then the message of the Error that ends it, if one does.
std::vector<std::string> loaded(const std::string& text, bool header = false, bool stop = false) {
  const std::atomic<bool> stopped{stop};
  TextSource source(text, 7);
  RowReader reader(source, "file", RowFormat::tsv);
  std::vector<std::string> out;
  try {
    LoadRows rows(reader, header, stopped);
    for (Row row; rows.next(row);) out.push_back(row.fields[0]);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::invalid_argument);
    out.emplace_back(e.what());
  }
  return out;
}

TEST(LoadRows, OfOtherSourcesAreAllOfThem) {
  EXPECT_THAT(loaded("a\t1\nb\t2\n"), ElementsAre("a", "b"));
  EXPECT_THAT(loaded("a\t1\nb\t2\n", true), ElementsAre("b"));
  EXPECT_THAT(loaded(""), ElementsAre());
  EXPECT_THAT(loaded("", true), ElementsAre());
  EXPECT_THAT(loaded("a\t1\n" + DumpEnd{1}.line()), ElementsAre("a", "#perdix-end"))
      << "only a dump has a last line";
}

TEST(LoadRows, OfADumpAreThoseBetweenItsFirstAndItsLastLine) {
  EXPECT_THAT(loaded(kFirst + "a\t1\nb\t2\n" + DumpEnd{2}.line()), ElementsAre("a", "b"));
  EXPECT_THAT(loaded(kFirst + DumpEnd{0}.line()), ElementsAre());
}

TEST(LoadRows, TheLastRowOfADumpThatWasCutOffIsNotShown) {
  EXPECT_THAT(loaded(kFirst + "a\t1\nb\t2"), ElementsAre("a", HasSubstr("cut off after 1 rows")));
  EXPECT_THAT(loaded(kFirst + "a\t1\nb\t2\n"), ElementsAre("a", HasSubstr("cut off")));
  EXPECT_THAT(loaded(kFirst), ElementsAre(HasSubstr("cut off after 0 rows")));
  EXPECT_THAT(loaded(kFirst + "a\t1\n#perdix-e"), ElementsAre("a", HasSubstr("cut off")));
}

TEST(LoadRows, AnInterruptIsNoCut) {
  EXPECT_THAT(loaded(kFirst + "a\t1\nb\t2\n", false, true), ElementsAre("a", "b"));
}

TEST(LoadRows, TheLastLineOfADumpMustFit) {
  EXPECT_THAT(loaded(kFirst + "a\t1\n" + DumpEnd{2}.line()),
              ElementsAre(HasSubstr("1 rows, but its last line says 2")));
  EXPECT_THAT(loaded(kFirst + "a\t1\n" + DumpEnd{1}.line() + "b\t2\n"),
              ElementsAre(HasSubstr("line 4 comes after")));
  EXPECT_THAT(loaded(kFirst + "a\t1\n#perdix-end\n"), ElementsAre(HasSubstr("damaged")));
  EXPECT_THAT(loaded(kFirst + "a\t1\n#perdix-end\t1x\n"), ElementsAre(HasSubstr("damaged")));
  EXPECT_THAT(loaded(kFirst + "a\t1\n#perdix-end\t\n"), ElementsAre(HasSubstr("damaged")));
}

}  // namespace
}  // namespace perdix::tool
