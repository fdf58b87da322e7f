#include "index/common/read_beyond.h"

#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace perdix::detail::index {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string key_of(unsigned number) { return fmt::format("key {:04}", number); }

/// What an index has for these reads.
struct Engine {
  explicit Engine(unsigned count, std::size_t bytes = 8) {
    for (unsigned i = 0; i < count; ++i) pairs.emplace(key_of(i), std::string(bytes, 'v'));
  }

  template <class Ahead>
  void read(std::string_view from, std::size_t limit, Ahead& ahead) const {
    for (auto i = pairs.lower_bound(from); i != pairs.end() && limit > 0; ++i, --limit)
      if (!ahead(i->first, i->second)) return;
  }
  template <class Ahead>
  void read_below(std::string_view key, std::size_t limit, Ahead& ahead) const {
    for (auto i = pairs.lower_bound(key); i != pairs.begin() && limit > 0; --limit)
      if (--i, !ahead(i->first, i->second)) return;
  }

  std::map<std::string, std::string, std::less<>> pairs;
};

struct ReadBeyond : testing::Test {
  /// The numbers of the keys that are read.
  std::vector<unsigned> above(unsigned number, std::size_t limit) {
    return numbers(read_above<std::string, std::string>(engine, key_of(number), limit, pairs));
  }
  std::vector<unsigned> below(unsigned number, std::size_t limit) {
    return numbers(read_below<std::string, std::string>(engine, key_of(number), limit, pairs));
  }
  std::vector<unsigned> numbers(std::size_t count) const {
    std::vector<unsigned> numbers;
    for (const auto& [key, value] : std::span(pairs).first(count)) {
      numbers.push_back(static_cast<unsigned>(std::stoul(key.substr(4))));
      EXPECT_EQ(value, engine.pairs.find(key)->second);
    }
    return numbers;
  }

  using Numbers = std::vector<unsigned>;
  Engine engine{100};
  Pairs pairs;
};

TEST_F(ReadBeyond, ShowsTheNearestFirst) {
  EXPECT_EQ(above(20, 3), (Numbers{21, 22, 23}));
  EXPECT_EQ(below(20, 3), (Numbers{19, 18, 17}));
  EXPECT_EQ(above(97, 16), (Numbers{98, 99}));
  EXPECT_EQ(below(2, 16), (Numbers{1, 0}));
  EXPECT_EQ(above(99, 16), Numbers());
  EXPECT_EQ(below(0, 16), Numbers());
  engine.pairs.erase(key_of(50));  // the key itself need not be there
  EXPECT_EQ(above(50, 2), (Numbers{51, 52}));
  EXPECT_EQ(below(50, 2), (Numbers{49, 48}));
}

TEST_F(ReadBeyond, ReadsFewLargePairs) {
  engine = Engine(100, 5 << 10);
  EXPECT_EQ(above(20, 64), (Numbers{21, 22, 23, 24}));
  EXPECT_EQ(below(20, 64), (Numbers{19, 18, 17, 16}));
  engine = Engine(100, 1 << 20);
  EXPECT_EQ(above(20, 64), Numbers{21});
  EXPECT_EQ(below(20, 64), Numbers{19});
}

TEST_F(ReadBeyond, UsesTheMemoryOfStringsAgain) {
  engine = Engine(100, 100);
  above(0, 8);
  std::vector<const char*> places;
  for (const auto& [key, value] : pairs) places.push_back(value.data());
  EXPECT_EQ(below(3, 8), (Numbers{2, 1, 0}));
  EXPECT_EQ(above(50, 8).size(), 8U);
  for (std::size_t i = 0; i < places.size(); ++i) EXPECT_EQ(pairs[i].second.data(), places[i]);
}

}  // namespace
}  // namespace perdix::detail::index
