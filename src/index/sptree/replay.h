// What a leaf's chain in the log says after a restart (layout.h L4, L5, L7): survivor_of().
//
// Records are read from the newest to the oldest, so the first one that names a word or a slot
// counts. Words identify keys: while a chain is open, the word of a buffered key is not reused for
// another key without a newer record that says so.
//
// A chain is stale if a record of it has been applied already: its END was lost in a crash. Then
// its pairs may be in the next leaf (L7). Their strings can be read as long as no operation uses
// that leaf, which could free them.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "index/common/codec.h"
#include "index/sptree/leaf.h"
#include "index/sptree/leaf_at.h"
#include "pm/access.h"
#include "pool/layout.h"
#include "wal/log.h"

namespace perdix::detail::index::sptree {

/// As many records as most chains have: a buffer holds 28 changes, and keys that are written twice
/// add a few.
inline constexpr unsigned kUsualRecords = 32;

/// The content of a chain.
struct Replay {
  std::vector<std::pair<Word, Word>> pairs;  ///< buffered keys and values
  SlotSet erased;                            ///< slots of the leaf whose pairs it erases
  unsigned records = 0;
  bool stale = false;  ///< a record of it was applied before the crash
};

/// Words of keys in these slots of a leaf: all that are also in `live`, and few others. So a caller
/// that looks for each key of `live` compares with few words.
inline std::vector<Word> words_that_may_be_in(const std::vector<std::pair<Word, Word>>& live,
                                              const Leaf& leaf, SlotSet slots) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // spreads words over the bits
  const auto bit = [](Word key) { return std::uint64_t{1} << (key * kGolden >> 58); };
  std::uint64_t bits = 0;
  for (const auto& [key, value] : live) bits |= bit(key);
  std::vector<Word> keys;
  keys.reserve(kLeafPairs);
  for (const unsigned slot : slots) {
    const Word key = pm::load(pair_at(leaf, slot).key);
    if ((bits & bit(key)) != 0) keys.push_back(key);
  }
  return keys;
}

/// Reads a chain, and compares it with its leaf. in_range(word): whether the key of that word
/// belongs to the leaf. It is called for live pairs only, whose strings can be read. Throws
/// corrupt.
template <class InRange>
Replay replay(const wal::Log& log, wal::Owner owner, wal::Position head, const Leaf& leaf,
              InRange in_range) {
  Replay result;
  std::vector<Word> seen;
  std::vector<std::pair<Word, Word>> live;
  seen.reserve(kUsualRecords);
  live.reserve(kUsualRecords);
  result.pairs.reserve(kUsualRecords);
  const SlotSet slots = slots_of(leaf);
  log.follow(owner, head, [&](wal::Type type, Word key, Word value, wal::Position) {
    ++result.records;
    if (type == wal::Type::erase_slot) {
      const SlotSet slot = SlotSet::of(key % kLeafPairs);
      result.erased = result.erased | (slots & slot);
      if ((slots & slot).empty()) result.stale = true;
      return;
    }
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) return;
    seen.push_back(key);
    if (type == wal::Type::put) live.emplace_back(key, value);
  });
  const std::vector<Word> in_leaf = words_that_may_be_in(live, leaf, slots - result.erased);
  for (const auto& [key, value] : live) {
    const bool merged = std::find(in_leaf.begin(), in_leaf.end(), key) != in_leaf.end();
    if (merged || !in_range(key)) {
      result.stale = true;
    } else {
      result.pairs.emplace_back(key, value);
    }
  }
  return result;
}

/// How many pairs of a chain have no free slot in the leaf (write_buffer.h, B4).
inline unsigned pairs_without_slot(const Replay& chain, const Leaf& leaf) {
  const auto all = slots_of(leaf).count() + static_cast<unsigned>(chain.pairs.size());
  return all > kLeafPairs ? all - kLeafPairs : 0;
}

/// The owner of the leaf's chain (L7). No other leaf has the same, since leaves are larger than
/// kUnit.
inline wal::Owner owner_of(pm::Offset leaf) {
  constexpr pm::Offset kUnit = 2048;
  static_assert(kUnit < sizeof(Leaf) && pool::kMaxPoolSize / kUnit <= wal::kMaxOwner + 1);
  return leaf / kUnit;
}

/// A leaf's chain from before a restart.
struct Survivor {
  wal::Owner owner;
  wal::Position head;
  Replay replay;
  std::optional<wal::Log::Adoption> adoption = std::nullopt;  ///< once it is prepared
};

/// The chain of a leaf that no operation has used since the restart; nullopt if the leaf has none.
/// Throws corrupt.
template <class K>
std::optional<Survivor> survivor_of(const pool::PoolCore& pool, const Codec<K>& keys,
                                    const wal::Log& log, const Leaf& leaf) {
  const wal::Owner owner = owner_of(pool.offset(&leaf));
  const wal::Position head = log.surviving(owner);
  if (head == 0) return std::nullopt;
  const pm::Offset next = successor_of(leaf);
  const auto in_range = [&](Word word) {
    const auto key = keys.view(word);
    return !(key < keys.view(pm::load(leaf.low))) &&
           (next == pm::kNull || key < keys.view(pm::load(leaf_at(pool, next).low)));
  };
  return Survivor{owner, head, replay(log, owner, head, leaf, in_range), std::nullopt};
}

}  // namespace perdix::detail::index::sptree
