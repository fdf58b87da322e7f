// Search of a list by lines, from any guess: as std::lower_bound, and few lines where values are
// spread evenly.
#include "index/elf/search.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "index/elf/greatest_values.h"
#include "util/random.h"

namespace perdix::detail::index::elf {
namespace {

std::vector<std::uint32_t> ascending(util::Random& random, std::size_t count, std::uint64_t below) {
  std::set<std::uint32_t> values;
  while (values.size() < count) values.insert(static_cast<std::uint32_t>(random.below(below)));
  return {values.begin(), values.end()};
}

struct Found {
  std::uint32_t index;
  unsigned lines;
};

Found find(const std::vector<std::uint32_t>& all, std::uint32_t skip, std::uint32_t bound,
           std::uint32_t guess) {
  const std::uint32_t* values = all.data() + skip;
  const auto count = static_cast<std::uint32_t>(all.size() - skip);
  Found found{0, 0};
  found.index = search(values, count, bound, guess, [&](std::uint32_t first, std::uint32_t read) {
    EXPECT_LE(first + read, count);
    ++found.lines;
  });
  return found;
}

TEST(Search, IsALowerBoundFromAnyGuess) {
  util::Random random(1);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t count = 1 + random.below(200);
    const bool dense = random.one_in(2);
    const auto all = ascending(random, count, dense ? count + 20 : std::uint64_t{1} << 32);
    const auto skip = static_cast<std::uint32_t>(random.below(std::min<std::size_t>(count, 17)));
    std::uint32_t bound = static_cast<std::uint32_t>(random.below(dense ? count + 30 : 1ull << 32));
    if (random.one_in(3)) bound = all[random.below(count)];
    const auto left = static_cast<std::uint32_t>(count - skip);
    const auto guess = static_cast<std::uint32_t>(random.below(left));
    const auto expected = std::lower_bound(all.begin() + skip, all.end(), bound) - all.begin();
    EXPECT_EQ(find(all, skip, bound, guess).index + skip, expected);
  }
}

TEST(Search, OfAnEmptyListFindsItsEnd) {
  EXPECT_EQ(search(nullptr, 0, 5, 0, [](std::uint32_t, std::uint32_t) {}), 0u);
}

TEST(Search, EndsWhateverTheOrderOfTheValues) {
  util::Random random(2);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint32_t> values(17 + random.below(300));
    for (std::uint32_t& value : values) value = static_cast<std::uint32_t>(random());
    const auto guess = static_cast<std::uint32_t>(random.below(values.size()));
    EXPECT_LE(find(values, 0, static_cast<std::uint32_t>(random()), guess).index, values.size());
  }
}

TEST(Search, ReadsFewLinesOfEvenlySpreadValues) {
  util::Random random(3);
  double lines = 0;
  for (int round = 0; round < 1000; ++round) {
    const auto all = ascending(random, 630, 1010);
    const std::uint32_t bound = all[random.below(all.size())];
    const std::uint32_t guess = guess_index(bound, all[0], 1009, 630);
    lines += find(all, 0, bound, guess).lines;
  }
  EXPECT_LT(lines / 1000, 2);
}

TEST(Search, GuessesInDenseLists) {
  EXPECT_EQ(guess_index(7, 0, 100, 101), 7u);
  EXPECT_EQ(guess_index(7, 5, 0, 101), 50u);
  EXPECT_EQ(guess_index(3, 5, 100, 101), 0u);
  EXPECT_EQ(guess_index(~0u, 5, 100, 101), 100u);
  EXPECT_EQ(guess_index(~0u, 0, ~0u, 1000), 999u);
  EXPECT_EQ(guess_index(9, 0, 100, 0), 0u);
}

TEST(GreatestValues, OnlyGrow) {
  GreatestValues greatest;
  EXPECT_EQ(greatest.of(3), 0u);
  greatest.note(3, 50);
  greatest.note(3, 40);
  EXPECT_EQ(greatest.of(3), 50u);
  EXPECT_EQ(greatest.of(2), 0u);
}

}  // namespace
}  // namespace perdix::detail::index::elf
