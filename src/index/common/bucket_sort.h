// Sorts the few pairs of a leaf by keys that are numbers, in a fraction of the time of std::sort,
// every other branch of which is mispredicted.
//
// The range of the keys is divided into equal buckets, some for each pair. Each pair goes to its
// bucket, which takes no branch that depends on a key. The few that share a bucket, or most of them
// if the keys lie unevenly, are put in order by insertion after that.
//
// Pure function.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <span>

namespace perdix::detail::index {

/// Sorts items by `key`, a std::uint64_t. At most `kMax`, which is below 256. Equal ones stay in
/// their order. `Item` is copied. Cost: keys of which most lie close together, and one far away,
/// take as long as a sort by insertion.
template <unsigned kMax, class Item>
void bucket_sort(std::span<Item> items) {
  static_assert(kMax < 256, "ranks are bytes");
  constexpr unsigned kBits = std::bit_width(kMax - 1);
  assert(items.size() <= kMax);
  if (items.size() < 2) return;
  std::uint64_t least = items[0].key, largest = least;
  for (const Item& item : items) {
    least = std::min<std::uint64_t>(least, item.key);
    largest = std::max<std::uint64_t>(largest, item.key);
  }
  const unsigned width = static_cast<unsigned>(std::bit_width(largest - least));
  const unsigned shift = width > kBits ? width - kBits : 0;
  std::array<std::uint8_t, 1u << kBits> ranks{};  // first how many a bucket has
  for (const Item& item : items) ++ranks[(item.key - least) >> shift];
  unsigned sum = 0;
  for (std::uint8_t& rank : ranks) {
    const unsigned count = rank;
    rank = static_cast<std::uint8_t>(sum);  // then where the next one of the bucket goes
    sum += count;
  }
  std::array<Item, kMax> sorted;
  for (const Item& item : items) sorted[ranks[(item.key - least) >> shift]++] = item;
  for (unsigned i = 0; i < items.size(); ++i) {
    unsigned at = i;
    for (; at > 0 && sorted[i].key < items[at - 1].key; --at) items[at] = items[at - 1];
    items[at] = sorted[i];
  }
}

}  // namespace perdix::detail::index
