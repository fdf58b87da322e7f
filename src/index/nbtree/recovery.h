// Opening an index. A new index gets its first leaves. Of an existing index the anchors are
// read, from the pages that they lie in and without following the list from leaf to leaf, and the
// layers above the leaves are built from them. The leaves' DRAM sides come back later (resumer.h).
// The pool has resolved the allocator's log before, so the invariants of layout.h hold.
//
// Opening frees what the ledger names and the index does not reach. After a crash during that, the
// next opening goes on with the rest.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

#include "alloc/session.h"
#include "index/common/codec.h"
#include "index/common/retry.h"
#include "index/nbtree/entry.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/upkeep.h"
#include "util/huge_vector.h"

namespace perdix::detail::index::nbtree {

/// Gives a new index its root block, and the root block the first leaf of each region. The root
/// word and `first` are the commits. After a crash between the two it goes on with the leaves.
template <class K>
void create(pool::PoolCore& pool, std::uint64_t& root_word) {
  const pm::Persister& pm = pool.pm();
  if (pm::load(root_word) == pm::kNull) {
    alloc::Session session = pool.allocator().session();
    const pm::Offset offset = session.reserve(sizeof(Root));
    Root& root = *pool.at<Root>(offset);
    pm.zero(&root, sizeof root);
    pm.store(root.magic, kRootMagic);
    pm.flush(&root, sizeof root);  // log() fences before the root can be linked
    session.commit_when(root_word, ~std::uint64_t{0}, offset);
    session.log();
    pm.store(root_word, offset);               // the commit
    pm.flush(&root_word, sizeof(pm::Offset));  // finish() fences: nothing is freed (R3)
    session.finish();
  }
  Root& root = checked_root(pool, pm::load(root_word));
  if (pm::load(root.first) != pm::kNull) return;
  alloc::Session session = pool.allocator().session();
  for (unsigned i = EntryLayout<K>::kRegions; i-- > 0;) {
    const std::size_t bytes = block_bytes(kSmallCapacity);
    const pm::Offset offset = session.reserve(bytes);
    Block& block = *pool.at<Block>(offset);
    pm.zero(&block, bytes);
    pm.store(block.meta, Meta{kSmallCapacity}.pack());
    const bool last = i + 1 == EntryLayout<K>::kRegions;
    pm.store(block.next, last ? pm::kNull : pool.offset(&root.anchors[i + 1]));
    pm.flush(&block, bytes);  // log() fences before it can be linked
    pm.store(root.anchors[i].block, offset);
    pm.store(root.anchors[i].low, EntryLayout<K>::low_of_region(i));
  }
  pm.flush(&root.anchors, sizeof root.anchors);  // as above
  session.commit_when(root.first, ~std::uint64_t{0}, pool.offset(root.anchors.data()));
  session.log();
  pm.store(root.first, pool.offset(root.anchors.data()));  // the commit
  pm.flush(&root.first, sizeof root.first);                // finish() fences: nothing is freed (R3)
  session.finish();
}

/// The root of an index, which is created if it is not there or not complete.
template <class K>
Root& ready_root(pool::PoolCore& pool, std::uint64_t& root_word) {
  retry_when_full(pool, [&] { create<K>(pool, root_word); });
  return checked_root(pool, pm::load(root_word));
}

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

/// Builds the layers above the leaves, which are cold, and resolves what the ledger says of
/// structure modifications. Returns how many leaves there are. Throws corrupt and std::bad_alloc.
template <class K>
std::size_t recover(const pool::PoolCore& pool, const Codec<K>& keys, Upkeep<K>& upkeep) {
  const bool interrupted = upkeep.ledger.occupied(Ledger::Purpose::modification) != 0;
  const auto anchors = listed_anchors(pool, keys, upkeep.root, upkeep.ledger);
  auto anchor = anchors.begin();
  upkeep.top.build(anchors.size(), [&](std::span<typename TopLayer<K>::Bound> bounds) {
    std::array<void*, TopLayer<K>::kBuildFanout> memory;
    upkeep.memory.arena().allocate(sizeof(Position<K>), std::span(memory.data(), bounds.size()));
    for (std::size_t i = 0; i < bounds.size(); ++i, ++anchor) {
      Position<K>& at = upkeep.positions.add_cold(memory[i], *anchor->anchor, anchor->low);
      bounds[i] = {at.low(), &at};
    }
  });
  upkeep.ledger.resolve_all(Ledger::Purpose::modification);
  // A leaf that the crash has left frozen needs a block before anything in it can be erased: one of
  // those that have just been freed.
  if (interrupted) upkeep.reserve.fill();
  return anchors.size();
}

}  // namespace perdix::detail::index::nbtree
