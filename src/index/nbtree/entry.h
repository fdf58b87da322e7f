// The state of an entry, which its key word carries (NBTree (docs/papers.md), section V, reserves
// two bits of the value and key 0 for the like; here no bit of key or value is taken).
//
// A string's word is an offset and a hash, and offsets are multiples of 16: two low bits are free.
// Of an integer the two high bits are left out: no leaf crosses a quarter of the range, so they are
// those of the leaf's low bound.
//
//   empty -> pending -> live -> dead        an insert, and later an erase
//   empty -> dead                           the slot's owner was too slow, or the block was closed
//   pending -> dead                         the insert lost against one of the same key before it
//   pending, live -> frozen                 the block is being replaced: nothing in it changes more
//
// Each step is one compare-and-swap, and there are no others. An update changes the value of a live
// entry, by a compare-and-swap of both words: so it fails once the entry is frozen. `dead` and
// `frozen` are final. Whether it is live, pending or frozen makes no difference after a crash.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "index/common/codec.h"
#include "index/nbtree/layout.h"
#include "util/line.h"

namespace perdix::detail::index::nbtree {

enum class State : std::uint8_t {
  special = 0,  ///< empty or dead: no key is here
  live = 1,
  pending = 2,  ///< written, but it is not decided whether this insert wins
  frozen = 3,
};

inline constexpr Word kEmpty = 0;

/// How a key's word carries the state. No leaf crosses a region of keys.
template <class K>
struct EntryLayout;

template <>
struct EntryLayout<std::uint64_t> {
  static constexpr unsigned kShift = 62;
  static constexpr Word kKeyBits = (Word{1} << kShift) - 1;
  static constexpr Word kDead = 1;

  static State state(Word word) { return static_cast<State>(word >> kShift); }
  static Word pack(Word key, State state) {
    return (key & kKeyBits) | static_cast<Word>(state) << kShift;
  }
  /// The key's word, of a leaf with this low bound.
  static Word key(Word word, std::uint64_t low) { return (word & kKeyBits) | (low & ~kKeyBits); }
  static constexpr unsigned kRegions = 4;
  static unsigned region(std::uint64_t low) { return static_cast<unsigned>(low >> kShift); }
  static Word low_of_region(unsigned region) { return Word{region} << kShift; }
  static bool begins_region(std::uint64_t low) { return (low & kKeyBits) == 0; }
};

template <>
struct EntryLayout<std::string> {
  static constexpr Word kKeyBits = ~Word{3};
  static constexpr Word kDead = 4;  // no blob is there

  static State state(Word word) { return static_cast<State>(word & 3); }
  static Word pack(Word key, State state) { return key | static_cast<Word>(state); }
  static Word key(Word word, std::string_view) { return word & kKeyBits; }
  static constexpr unsigned kRegions = 1;
  static unsigned region(std::string_view) { return 0; }
  static Word low_of_region(unsigned) { return 0; }
  static bool begins_region(std::string_view low) { return low.empty(); }
};

template <class K>
Word with_state(Word word, State state) {
  return EntryLayout<K>::pack(word & EntryLayout<K>::kKeyBits, state);
}

/// A key's fingerprint, by which leaf.h finds entries: never 0.
inline std::uint8_t fingerprint_of(std::uint16_t hash) {
  return static_cast<std::uint8_t>(hash % 255 + 1);
}

/// What the key words of a block say after a crash, when there is no leaf for it in DRAM: sets of
/// slots.
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
