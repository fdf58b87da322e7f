// Batches of lookups. A lookup waits for memory most of its time, so the keys of a group go down
// level by level together, and their waits overlap.
#pragma once

#include <array>

#include "index/common/groups.h"
#include "index/fastfair/fastfair.h"

namespace perdix::detail::index::fastfair {
/// Asks for the lines of a node. The later ones the processor fetches by itself while it searches.
inline void prefetch(const Node& node) {
  constexpr unsigned kLines = 4;
  for (unsigned line = 0; line < kLines; ++line) {
    __builtin_prefetch(reinterpret_cast<const char*>(&node) + line * pm::kLineSize);
  }
}

/// One step for each key in turn, until all have come to a leaf. A step that a writer has overtaken
/// begins again at the root.
template <class K>
void WordTree<K>::find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const {
  if (path_ != nullptr) return find_by_path(keys, out);
  std::array<Seen, kGroup> at;
  at.fill(start());
  for (bool on_the_way = true; on_the_way;) {
    on_the_way = false;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (at[i].node == nullptr) at[i] = start();
      if (meta_of(*at[i].node).level == 0) continue;
      at[i] = step(at[i], {keys[i]});
      if (at[i].node != nullptr) prefetch(*at[i].node);
      on_the_way = true;
    }
  }
  for (std::size_t i = 0; i < keys.size(); ++i) out[i] = find_from(at[i], keys[i]);
}

}  // namespace perdix::detail::index::fastfair
