// The write buffers of FAST&FAIR: half of a leaf (Zhao et al. 2024, section 3.1). And the pairs
// that a leaf and its buffer have together.
#pragma once

#include <array>
#include <cstdint>

#include "index/common/codec.h"
#include "index/common/home_buffers.h"
#include "index/fastfair/layout.h"
#include "index/fastfair/shift.h"

namespace perdix::detail::index::fastfair {

struct BufferShape {
  using Node = Home;
  using Slots = NoSlots;

  static constexpr unsigned kPairs = kCapacity / 2;
  static constexpr unsigned kSlots = kCapacity;
  static constexpr unsigned kNumberBits = 22;

  static std::uint8_t fingerprint(Hash16 hash) { return static_cast<std::uint8_t>(hash); }
};

/// How many pairs a leaf and its buffer have together, at most.
inline constexpr unsigned kMaxPairs = kCapacity + BufferShape::kPairs;

/// How many pairs the buffer of a leaf takes, by the number of pairs that the leaf has room for.
constexpr unsigned buffered_pairs(unsigned fanout) { return fanout / 2; }

/// Pairs of a leaf and its buffer, in the order of their keys.
struct Run {
  std::array<Entry, kMaxPairs> entries;
  unsigned size = 0;

  void add(Entry entry) { entries[size++] = entry; }
};

/// The pairs of a leaf and those that its buffer has, `buffered`, in the order of their keys.
template <class K, class Buffered>
Run all_pairs(const Codec<K>& keys, const Node& leaf, const Buffered& buffered) {
  Run run;
  unsigned next = 0;
  for (unsigned i = 0; i < meta_of(leaf).count; ++i) {
    if (is_copy(leaf, i)) continue;
    const Entry entry = load_entry(leaf, i);
    const auto key = keys.view(entry.key);
    while (next < buffered.size && keys.view(buffered.pairs[next].key) < key)
      run.add(buffered.pairs[next++]);
    run.add(entry);
  }
  while (next < buffered.size) run.add(buffered.pairs[next++]);
  return run;
}

}  // namespace perdix::detail::index::fastfair
