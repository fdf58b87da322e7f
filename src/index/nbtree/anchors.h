// The list of anchors as it is found when the index is opened: from the pages that they lie in,
// without following it from leaf to leaf.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "index/common/word.h"
#include "index/nbtree/entry.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/reference.h"

namespace perdix::index::nbtree {

template <class K>
struct ListedAnchor {
  View<K> low;
  Anchor* anchor;
};

/// Sorts by low bounds. Integers are first distributed to buckets, which saves most of the time
/// that opening an index would take where they are spread evenly, and costs little where they are
/// not.
template <class K>
void sort_by_low(std::vector<ListedAnchor<K>>& anchors) {
  const auto less = [](const auto& a, const auto& b) { return a.low < b.low; };
  constexpr std::size_t kOfABucket = 4;
  const std::size_t buckets = anchors.size() / kOfABucket;
  if constexpr (Words<K>::kInline) {
    if (buckets == 0) return std::sort(anchors.begin(), anchors.end(), less);
    const auto [least, most] = std::minmax_element(anchors.begin(), anchors.end(), less);
    const auto bucket_of = [&, low = least->low,
                            range =
                                static_cast<double>(most->low - least->low) + 1](const auto& a) {
      const double share = static_cast<double>(a.low - low) / range;
      return std::min(static_cast<std::size_t>(share * static_cast<double>(buckets)), buckets - 1);
    };
    std::vector<std::uint32_t> begins(buckets + 1);
    for (const auto& item : anchors) ++begins[bucket_of(item) + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<ListedAnchor<K>> sorted(anchors.size());
    std::vector<std::uint32_t> next(begins.begin(), begins.end() - 1);
    for (const auto& item : anchors) sorted[next[bucket_of(item)]++] = item;
    for (std::size_t i = 0; i < buckets; ++i)
      std::sort(sorted.begin() + begins[i], sorted.begin() + begins[i + 1], less);
    anchors.swap(sorted);
  } else {
    std::sort(anchors.begin(), anchors.end(), less);
  }
}

/// The root's anchors and those in pages, free places left out, ascending.
template <class K>
std::vector<ListedAnchor<K>> sorted_anchors(const pool::PoolCore& pool, const Words<K>& keys,
                                            Root& root, const Ledger& ledger) {
  std::vector<ListedAnchor<K>> anchors;
  anchors.reserve(kMostRegions + ledger.page_bytes() / sizeof(Anchor));
  const auto add = [&](Anchor& anchor) {
    anchors.push_back({keys.view(pm::load(anchor.low)), &anchor});
  };
  for (unsigned i = 0; i < Codec<K>::kRegions; ++i) {
    Anchor& anchor = root.anchors[i];
    if (pm::load(anchor.block) == pm::kNull || pm::load(anchor.low) != Codec<K>::low_of_region(i))
      throw_corrupt(pool, "an anchor", pool.offset(&anchor));
    add(anchor);
  }
  ledger.for_each_anchor(add);
  sort_by_low(anchors);
  return anchors;
}

/// All anchors of the list, ascending. What the list reaches is told to the ledger's leftovers: an
/// anchor that the ledger names is in it if its predecessor leads to it (N8). Throws corrupt.
template <class K>
std::vector<ListedAnchor<K>> listed_anchors(const pool::PoolCore& pool, const Words<K>& keys,
                                            Root& root, const Ledger& ledger) {
  const Leftovers& leftovers = ledger.leftovers(Ledger::Purpose::modification);
  std::vector<ListedAnchor<K>> anchors = sorted_anchors(pool, keys, root, ledger);
  std::size_t listed = 0;
  for (const ListedAnchor<K>& item : anchors) {
    const pm::Offset offset = pool.offset(item.anchor);
    if (listed == 0 && item.anchor != root.anchors.data()) throw_corrupt(pool, "an anchor", offset);
    if (leftovers.names(offset | kAnchorTag)) {
      const Block& before = checked_block(pool, *anchors[listed - 1].anchor);
      if (pm::load(before.next) != offset) continue;
      leftovers.reached(offset | kAnchorTag);
    }
    if (listed > 0 && !(anchors[listed - 1].low < item.low))
      throw_corrupt(pool, "an anchor", offset);
    if (!leftovers.empty()) {
      leftovers.reached(pm::load(item.anchor->block));
      leftovers.reached_entry<K, std::uint64_t>(pm::load(item.anchor->low), 0);
    }
    anchors[listed++] = item;
  }
  anchors.resize(listed);
  return anchors;
}

}  // namespace perdix::index::nbtree
