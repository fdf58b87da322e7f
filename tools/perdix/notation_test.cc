#include "perdix/notation.h"

#include <gtest/gtest.h>

#include <perdix/error.h>
#include <perdix/index.h>

#include "perdix/dump_header.h"
#include "util/random.h"

namespace perdix::tool {
namespace {

TEST(Escape, LeavesTextAlone) {
  for (const std::string text :
       {"", "word", "two words", "naïve", "日本語", "🐦", "#1, \"quoted\""}) {
    EXPECT_EQ(escape(text), text);
  }
}

TEST(Escape, WritesWhatWouldSpoilALine) {
  EXPECT_EQ(escape("a\tb\nc\rd\\e"), "a\\tb\\nc\\rd\\\\e");
  EXPECT_EQ(escape(std::string("\0\x1f\x7f", 3)), "\\x00\\x1f\\x7f");
}

TEST(Escape, WritesBytesThatAreNoUtf8) {
  EXPECT_EQ(escape("\xff"), "\\xff");
  EXPECT_EQ(escape("\xc3"), "\\xc3");                             // cut short
  EXPECT_EQ(escape("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(escape("\xe0\x80\x80"), "\\xe0\\x80\\x80");           // overlong
  EXPECT_EQ(escape("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // surrogate
  EXPECT_EQ(escape("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  EXPECT_EQ(escape("\xc3\xa9\xa9"), "\xc3\xa9\\xa9");             // a stray continuation
}

TEST(Escape, WritesWhatATerminalWouldActOn) {
  EXPECT_EQ(escape("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(escape("\xc2\x9b"), "\\xc2\\x9b");           // CSI, a C1 control
  EXPECT_EQ(escape("\xc2\xa0"), "\xc2\xa0");             // the first one that is none
  EXPECT_EQ(escape("\xd8\x9c"), "\\xd8\\x9c");           // Arabic letter mark
  EXPECT_EQ(escape("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right-to-left override
  EXPECT_EQ(escape("\xe2\x81\xa6"), "\\xe2\\x81\\xa6");  // an isolate
  EXPECT_EQ(escape("\xe2\x80\x99"), "\xe2\x80\x99");     // an apostrophe
}

TEST(Printable, KeepsBackslashes) {
  EXPECT_EQ(printable("C:\\dir"), "C:\\dir");
  EXPECT_EQ(printable("an index named \x1b]0;x\x07\n"), "an index named \\x1b]0;x\\x07\\n");
}

TEST(Escape, AnyBytesComeBack) {
  constexpr std::uint64_t kSeed = 5;
  detail::util::Random random(kSeed);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random.below(12), '\0');
    // Bytes that mean something to the notation come more often than by chance.
    constexpr std::string_view kSpecial = "\\xtnr09af\t\n\r\xc3\xa9\xe2\x82\xac\xf0";
    for (char& c : bytes) {
      c = random.one_in(2) ? kSpecial[random.below(kSpecial.size())] : static_cast<char>(random());
    }
    const std::string text = escape(bytes);
    ASSERT_EQ(unescape(text), bytes) << "seed " << kSeed << ", round " << i;
    ASSERT_EQ(text.find_first_of("\t\n\r"), std::string::npos);
  }
}

TEST(Unescape, RefusesMalformedSequences) {
  for (const char* text : {"\\", "a\\", "\\q", "\\x", "\\x1", "\\xg0", "\\x1g"}) {
    EXPECT_THROW(unescape(text), Error) << text;
  }
}

TEST(Numbers, AreDecimalInEveryNotation) {
  for (const Notation notation : {Notation::escaped, Notation::plain, Notation::hex}) {
    for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{10}, ~std::uint64_t{0}}) {
      const std::string bytes = to_bytes(std::to_string(number), Kind::u64, notation);
      EXPECT_EQ(decode_u64(bytes), number);
      EXPECT_EQ(to_text(bytes, Kind::u64, notation), std::to_string(number));
    }
  }
}

TEST(Numbers, RefusesMalformedNumbers) {
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "1.0", "0x10", "18446744073709551616"}) {
    EXPECT_THROW(to_bytes(text, Kind::u64, Notation::plain), Error) << text;
  }
}

TEST(Hex, GoesBothWays) {
  EXPECT_EQ(to_bytes("00fF7f", Kind::bytes, Notation::hex), std::string("\x00\xff\x7f", 3));
  EXPECT_EQ(to_text(std::string("\x00\xff\x7f", 3), Kind::bytes, Notation::hex), "00ff7f");
  for (const char* text : {"0", "0g", "0x00", "00 "}) {
    EXPECT_THROW(to_bytes(text, Kind::bytes, Notation::hex), Error) << text;
  }
}

TEST(DumpHeader, GoesBothWays) {
  const DumpHeader header{"sptree", Kind::u64, Kind::bytes};
  EXPECT_EQ(header.line(), "#perdix-dump\t2\tsptree\tu64\tbytes\n");
  const auto parsed = DumpHeader::parse({"#perdix-dump", "2", "sptree", "u64", "bytes"});
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->engine, "sptree");
  EXPECT_EQ(parsed->keys, Kind::u64);
  EXPECT_EQ(parsed->values, Kind::bytes);
}

TEST(DumpHeader, IsToldFromRowsAndFromLaterVersions) {
  EXPECT_FALSE(DumpHeader::parse({"word", "1"}).has_value());
  EXPECT_THROW(DumpHeader::parse({"#perdix-dump", "3", "sptree", "u64", "bytes"}), Error);
  EXPECT_THROW(DumpHeader::parse({"#perdix-dump"}), Error);
  EXPECT_THROW(DumpHeader::parse({"#perdix-dump", "2", "sptree", "u64", "float"}), Error);
}

}  // namespace
}  // namespace perdix::tool
