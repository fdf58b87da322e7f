// The way to the leaf of a key: through the layers above, then by the leaves' own links.
//
// Whatever is found in a leaf counts if the leaf is still at its position afterwards
// (LeafRef::current). A search that comes to a cold leaf makes it warm, and one that comes to a
// join that has begun completes it.
//
// Thread-safe. The caller holds a guard.
#pragma once

#include <array>

#include "index/nbtree/cold_leaves.h"
#include "index/nbtree/leaf.h"
#include "index/nbtree/smo.h"
#include "index/nbtree/top.h"
#include "index/nbtree/top_writer.h"
#include "pm/probe.h"

namespace perdix::detail::index::nbtree {

template <class K>
class Locator {
 public:
  using Key = View<K>;

  Locator(const TopLayer<K>& top, TopWriter<K>& writer, ColdLeaves<K>& cold,
          Structure<K>& structure)
      : top_(top), writer_(writer), cold_(cold), structure_(structure) {}

  /// The leaf whose range has the key.
  LeafRef<K> locate(Key key) const;

  /// From there to the leaf whose range has the key.
  LeafRef<K> locate_at(TopSlot<K> slot, Key key) const;

  /// locate() where it is rare.
  [[gnu::noinline]] LeafRef<K> locate_again(Key key) const { return locate(key); }

 private:
  LeafRef<K> locate_from(TopSlot<K> slot, Key key) const;

  const TopLayer<K>& top_;
  TopWriter<K>& writer_;
  ColdLeaves<K>& cold_;
  Structure<K>& structure_;
};

// Inlined, as EntryProtocol::find() is, and what is rare is not: the fewer instructions a lookup
// takes, the more of the next one the processor can begin while this one waits for memory.

template <class K>
[[gnu::always_inline]] inline auto Locator<K>::locate(Key key) const -> LeafRef<K> {
  return locate_at(top_.floor(key), key);
}

template <class K>
[[gnu::always_inline]] inline auto Locator<K>::locate_at(TopSlot<K> slot, Key key) const
    -> LeafRef<K> {
  if (slot.leaf != nullptr) [[likely]] {
    slot.leaf->prefetch();  // its two lines are waited for together
    if (!slot.leaf->closing() && slot.leaf->covers(key)) [[likely]]
      return {slot.at, slot.leaf};
  }
  return locate_from(slot, key);
}

/// Finds it by the position, where the leaf is not known, is closing, or is not the key's.
template <class K>
[[gnu::noinline]] auto Locator<K>::locate_from(TopSlot<K> slot, Key key) const -> LeafRef<K> {
  Position<K>* at = slot.at;
  for (;;) {
    at = cold_.approach(*at, key, false);
    Leaf<K>* leaf = cold_.leaf_of(*at);
    if (leaf == nullptr) {  // joined with its left neighbour
      pm::on_step("nbtree: a search finds a position without a leaf");
      at = top_.linked_floor(key);
      continue;
    }
    leaf->prefetch();
    if (leaf->covers(key)) {
      if (slot.leaf == nullptr) writer_.renew(std::array{at});
      return {at, leaf};
    }
    Position<K>* next = leaf->next();
    if (next->leaf.load(std::memory_order_acquire) == nullptr) {
      pm::on_step("nbtree: a search completes a join");
      structure_.replace_leaf({at, leaf}, nullptr);
      continue;
    }
    pm::on_step("nbtree: a search goes right");
    at = next;
  }
}

}  // namespace perdix::detail::index::nbtree
