// The list of anchors as it is found when the index is opened: from the pages that they lie in,
// without following it from leaf to leaf.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

#include "index/common/codec.h"
#include "index/nbtree/entry.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/reference.h"
#include "util/huge_vector.h"

namespace perdix::detail::index::nbtree {

template <class K>
struct ListedAnchor {
  View<K> low;
  Anchor* anchor;
};

/// Sorts integers by their high bits, by a radix sort that goes from digit to digit upwards; then
/// what has the same high bits by comparisons. These have more values than there are anchors: so
/// where keys are spread evenly little is left to be compared. Digits are small, so that the places
/// that a pass writes to stay in the nearest cache.
template <class Item>
void radix_sort_by_low(util::HugeVector<Item>& items) {
  constexpr unsigned kDigitBits = 6;
  const auto less = [](const Item& a, const Item& b) { return a.low < b.low; };
  const auto [least, most] = std::minmax_element(items.begin(), items.end(), less);
  const std::uint64_t origin = least->low;
  const auto bits = static_cast<unsigned>(std::bit_width(most->low - origin));
  const unsigned passes = static_cast<unsigned>(std::bit_width(items.size())) / kDigitBits + 1;
  const unsigned shift = bits - std::min(bits, passes * kDigitBits);

  util::HugeVector<Item> sorted(items.size());
  for (unsigned pass = 0; pass < passes; ++pass) {
    const auto digit = [=](const Item& item) {
      return (item.low - origin) >> (shift + pass * kDigitBits) & ((1U << kDigitBits) - 1);
    };
    std::array<std::size_t, (1U << kDigitBits) + 1> ends{};
    for (const Item& item : items) ++ends[digit(item) + 1];
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    for (const Item& item : items) sorted[ends[digit(item)]++] = item;
    items.swap(sorted);
  }
  const auto high_bits = [=](const Item& item) { return (item.low - origin) >> shift; };
  for (auto begin = items.begin(); begin != items.end();) {
    auto end = begin + 1;
    while (end != items.end() && high_bits(*end) == high_bits(*begin)) ++end;
    if (end - begin > 1) std::sort(begin, end, less);
    begin = end;
  }
}

template <class K>
void sort_by_low(util::HugeVector<ListedAnchor<K>>& anchors) {
  if constexpr (Codec<K>::kInline) {
    radix_sort_by_low(anchors);
  } else {
    std::sort(anchors.begin(), anchors.end(),
              [](const auto& a, const auto& b) { return a.low < b.low; });
  }
}

/// The root's anchors and those in pages, free places left out, ascending.
template <class K>
util::HugeVector<ListedAnchor<K>> sorted_anchors(const pool::PoolCore& pool, const Codec<K>& keys,
                                                 Root& root, const Ledger& ledger) {
  util::HugeVector<ListedAnchor<K>> anchors;
  anchors.reserve(kMaxRegions + ledger.page_bytes() / sizeof(Anchor));
  const auto add = [&](Anchor& anchor) {
    anchors.push_back({keys.view(pm::load(anchor.low)), &anchor});
  };
  for (unsigned i = 0; i < EntryLayout<K>::kRegions; ++i) {
    Anchor& anchor = root.anchors[i];
    if (pm::load(anchor.block) == pm::kNull ||
        pm::load(anchor.low) != EntryLayout<K>::low_of_region(i))
      pool::throw_corrupt(pool, "an anchor", pool.offset(&anchor));
    add(anchor);
  }
  ledger.for_each_place([&](std::span<Anchor> places) {
    for (Anchor& place : places) {
      if (pm::load(place.block) != pm::kNull) add(place);
    }
  });
  sort_by_low(anchors);
  return anchors;
}

/// All anchors of the list, ascending. What the list reaches is told to the ledger's unresolved
/// blocks: an anchor that the ledger names is in it if its predecessor leads to it (N8). Throws
/// corrupt.
template <class K>
util::HugeVector<ListedAnchor<K>> listed_anchors(const pool::PoolCore& pool, const Codec<K>& keys,
                                                 Root& root, Ledger& ledger) {
  UnresolvedBlocks& unresolved = ledger.unresolved(Ledger::Purpose::modification);
  util::HugeVector<ListedAnchor<K>> anchors = sorted_anchors(pool, keys, root, ledger);
  std::size_t listed = 0;
  for (const ListedAnchor<K>& item : anchors) {
    const pm::Offset offset = pool.offset(item.anchor);
    if (listed == 0 && item.anchor != root.anchors.data())
      pool::throw_corrupt(pool, "an anchor", offset);
    if (unresolved.names(offset | kAnchorTag)) {
      const Block& before = checked_block(pool, *anchors[listed - 1].anchor);
      if (pm::load(before.next) != offset) continue;
      unresolved.reached(offset | kAnchorTag);
    }
    if (listed > 0 && !(anchors[listed - 1].low < item.low))
      pool::throw_corrupt(pool, "an anchor", offset);
    if (!unresolved.empty()) {
      unresolved.reached(pm::load(item.anchor->block));
      unresolved.reached_key<K>(pm::load(item.anchor->low));
    }
    anchors[listed++] = item;
  }
  anchors.resize(listed);
  return anchors;
}

}  // namespace perdix::detail::index::nbtree
