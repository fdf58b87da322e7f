// An ordered index of numbers in a std::map, for tests of what is made of its calls: cursors and
// ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <perdix/cursor.h>
#include <perdix/key_range.h>

namespace perdix {

struct TestMap {
  using Number = std::uint64_t;
  using Pair = std::pair<Number, Number>;
  using Range = KeyRange<TestMap, Number, Number>;

  explicit TestMap(Number count) {
    for (Number i = 0; i < count; ++i) pairs.emplace(i, i);
  }

  Range range(Number from, Number to) const { return Range(*this, from, to); }
  Range range(Number from) const { return Range(*this, from, std::nullopt); }

  std::optional<Pair> lower_bound(Number key) const { return at(pairs.lower_bound(key)); }
  std::optional<Pair> floor(Number key) const { return left_of(pairs.upper_bound(key)); }
  std::optional<Pair> before(Number key) const { return left_of(pairs.lower_bound(key)); }
  std::optional<Pair> first() const { return at(pairs.begin()); }
  std::optional<Pair> last() const { return left_of(pairs.end()); }

  std::size_t read_beyond(Number key, Direction direction, std::size_t limit,
                          std::vector<Pair>& into) const {
    limits.push_back(limit);
    std::size_t count = 0;
    const bool up = direction == Direction::up;
    auto next = up ? at(pairs.upper_bound(key)) : before(key);
    for (; next && count < limit; next = up ? above(*next) : below(*next)) {
      if (count == into.size()) into.emplace_back();
      into[count++] = *next;
      if (fails) throw std::bad_alloc();
    }
    return count;
  }

  std::map<Number, Number> pairs;
  bool fails = false;
  mutable std::vector<std::size_t> limits;  // of the reads so far

 private:
  using Place = std::map<Number, Number>::const_iterator;

  std::optional<Pair> at(Place i) const {
    return i == pairs.end() ? std::nullopt : std::optional<Pair>(*i);
  }
  std::optional<Pair> left_of(Place i) const {
    return i == pairs.begin() ? std::nullopt : std::optional<Pair>(*std::prev(i));
  }
  std::optional<Pair> above(const Pair& pair) const { return at(pairs.upper_bound(pair.first)); }
  std::optional<Pair> below(const Pair& pair) const { return before(pair.first); }
};

}  // namespace perdix
