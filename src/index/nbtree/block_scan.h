// What the key words of a block say after a crash, when there is no leaf for it in DRAM.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "index/common/codec.h"
#include "index/nbtree/entry.h"
#include "index/nbtree/leaf.h"
#include "util/line.h"

namespace perdix::detail::index::nbtree {

/// Sets of slots.
struct BlockScan {
  std::uint64_t counts = 0;  ///< the entry counts (N4)
  std::uint64_t lost = 0;    ///< one before it has the same key
  std::uint64_t dead = 0;
  std::uint64_t pending = 0;                                ///< of those that count
  std::uint64_t frozen = 0;                                 ///< of those that count
  alignas(64) std::array<std::uint8_t, 64> fingerprints{};  ///< for leaf.h; 0: empty
};

/// Sorts the entries of a leaf with that low bound. Throws corrupt.
template <class K>
BlockScan scan_block(const Codec<K>& keys, View<K> low, std::span<const Word> words) {
  using Layout = EntryLayout<K>;
  BlockScan found;
  for (unsigned i = 0; i < words.size(); ++i) {
    const std::uint64_t slot = std::uint64_t{1} << i;
    if (words[i] == kEmpty) continue;
    found.fingerprints[i] = fingerprint_of(0);
    const State state = Layout::state(words[i]);
    (state == State::special ? found.dead : found.counts) |= slot;
    if (state == State::special) continue;
    if (state == State::pending) found.pending |= slot;
    if (state == State::frozen) found.frozen |= slot;
    found.fingerprints[i] = fingerprint_of(Codec<K>::hash16_of_word(Layout::key(words[i], low)));
  }
  const auto same_key = [&](unsigned a, unsigned b) {
    const Word first = Layout::key(words[a], low), second = Layout::key(words[b], low);
    if constexpr (Codec<K>::kInline) return first == second;
    return Codec<K>::hash16_of_word(first) == Codec<K>::hash16_of_word(second) &&
           keys.view(first) == keys.view(second);
  };
  const util::Line line = util::load_line(found.fingerprints.data());
  for (std::uint64_t left = found.counts; left != 0; left &= left - 1) {
    const auto i = static_cast<unsigned>(__builtin_ctzll(left));
    const std::uint64_t slot = left & -left;
    std::uint64_t before =
        util::equal_bytes(line, found.fingerprints[i]) & found.counts & (slot - 1);
    for (; before != 0; before &= before - 1) {
      if (!same_key(static_cast<unsigned>(__builtin_ctzll(before)), i)) continue;
      found.lost |= slot;
      break;
    }
    found.counts &= ~found.lost;
  }
  found.pending &= found.counts;
  found.frozen &= found.counts;
  return found;
}

}  // namespace perdix::detail::index::nbtree
