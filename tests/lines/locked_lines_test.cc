// The yardstick by itself: instructions of all kinds of operands that compilers make.
#include "lines/locked_lines.h"

#include <array>
#include <atomic>
#include <memory>

#include <gtest/gtest.h>

#include "util/stripe.h"

namespace perdix::test {
namespace {

struct alignas(detail::util::kCacheLine) Line {
  std::atomic<std::uint64_t> word{0};
  std::atomic<std::uint8_t> byte{0};
};

std::uintptr_t line_of(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at) / detail::util::kCacheLine;
}

Line fixed;  // its address is relative to the instruction

TEST(LockedLines, SeesNothingInPlainLoadsAndStores) {
  volatile std::uint64_t word = 1;
  EXPECT_TRUE(locked_lines([&] { word = word + 6; }).empty());
  EXPECT_EQ(word, 7u);
}

TEST(LockedLines, SeesEachKindOfInstruction) {
  Line line;
  std::uint64_t expected = 0;
  std::uint8_t small = 0;
  const Lines wanted{line_of(&line)};
  EXPECT_EQ(locked_lines([&] { line.word.fetch_add(1); }), wanted);
  EXPECT_EQ(locked_lines([&] { line.word.fetch_or(8); }), wanted);
  EXPECT_EQ(locked_lines([&] { expected = line.word.exchange(2); }), wanted);
  EXPECT_EQ(locked_lines([&] { line.word.compare_exchange_strong(expected, 3); }), wanted);
  EXPECT_EQ(locked_lines([&] { line.word.store(4); }), wanted) << "an exchange";
  EXPECT_EQ(locked_lines([&] { small = line.byte.fetch_add(1); }), wanted);
  EXPECT_EQ(small, 0);
}

TEST(LockedLines, FindsOperandsWhereverTheyLie) {
  const auto lines = std::make_unique<std::array<Line, 64>>();
  for (std::size_t i = 0; i < lines->size(); ++i)
    EXPECT_EQ(locked_lines([&] { (*lines)[i].word.fetch_add(1); }), Lines{line_of(&(*lines)[i])});
  EXPECT_EQ(locked_lines([&] { fixed.word.fetch_add(1); }), Lines{line_of(&fixed)});
  EXPECT_EQ(locked_lines([&] { fixed.word.fetch_add(1'000'000); }), Lines{line_of(&fixed)});
}

TEST(LockedLines, TellsWhatIsCommon) {
  EXPECT_EQ(common_lines({1, 2, 3}, {2, 3, 4}), (Lines{2, 3}));
}

}  // namespace
}  // namespace perdix::test
