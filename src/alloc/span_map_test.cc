#include "alloc/span_map.h"

#include <algorithm>
#include <bitset>

#include <gtest/gtest.h>

#include "util/random.h"

namespace perdix::detail::alloc {
namespace {

unsigned longest_run(const std::bitset<kSpansPerChunk>& bits) {
  unsigned longest = 0;
  unsigned current = 0;
  for (unsigned i = 0; i < bits.size(); ++i) {
    current = bits[i] ? current + 1 : 0;
    longest = std::max(longest, current);
  }
  return longest;
}

TEST(SpanSet, AgreesWithABitset) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    util::Random random(seed);
    SpanSet set;
    std::bitset<kSpansPerChunk> bits;
    for (int i = 0; i < 60; ++i) {
      const auto begin = static_cast<unsigned>(random.below(kSpansPerChunk));
      const auto count =
          static_cast<unsigned>(random.below(kSpansPerChunk - begin) / (i % 7 + 1) + 1);
      const bool add = random.one_in(2);
      add ? set.add(begin, count) : set.remove(begin, count);
      for (unsigned j = begin; j < begin + count; ++j) bits[j] = add;
      ASSERT_EQ(set.size(), bits.count());
      ASSERT_EQ(set.longest_run(), longest_run(bits)) << seed;
      const unsigned wanted = static_cast<unsigned>(random.below(set.longest_run() + 1));
      if (wanted == 0) continue;
      const unsigned found = set.find_run(wanted);
      for (unsigned j = found; j < found + wanted; ++j) ASSERT_TRUE(set.contains(j) && bits[j]);
    }
  }
}

}  // namespace
}  // namespace perdix::detail::alloc
