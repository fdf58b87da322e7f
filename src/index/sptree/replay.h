// What a leaf's chain in the log says after a restart (layout.h L4, L5, L7).
//
// Records are read from the newest to the oldest, so the first one that names a word or a slot
// counts. Words identify keys: while a chain is open, the word of a buffered key is not reused for
// another one without a newer record that says so.
//
// A chain is stale if a record of it has been applied already: its END was lost in a crash.
// Its pairs may lie in the next leaf then, so their bytes are there as long as no operation uses
// that leaf.
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

/// Of a chain: a buffer holds 28 changes, and a few more follow where keys are written twice.
inline constexpr unsigned kUsualRecords = 32;

struct Replay {
  std::vector<std::pair<Word, Word>> pairs;  ///< buffered keys and values
  SlotSet erased;                            ///< slots of the leaf
  unsigned records = 0;
  bool stale = false;
};

/// Words of keys of a leaf: all that are in `live`, and few others. So a caller that looks for each
/// of those need not read the whole leaf.
inline std::vector<Word> keys_like(const std::vector<std::pair<Word, Word>>& live, const Leaf& leaf,
                                   SlotSet slots) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // spreads them
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

/// `in_range(word)`: whether the key of that word belongs to the leaf. Asked of live pairs only, so
/// the key's bytes are there.
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
  const std::vector<Word> in_leaf = keys_like(live, leaf, slots - result.erased);
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

/// Of the pairs of a chain, how many have no free slot in the leaf (write_buffer.h, B4).
inline unsigned without_slot(const Replay& chain, const Leaf& leaf) {
  const auto all = slots_of(leaf).count() + static_cast<unsigned>(chain.pairs.size());
  return all > kLeafPairs ? all - kLeafPairs : 0;
}

/// A number that no other leaf has: two of them are further apart than that.
inline wal::Owner owner_of(pm::Offset leaf) {
  constexpr pm::Offset kUnit = 2048;
  static_assert(kUnit < sizeof(Leaf) && pool::kMaxPoolSize / kUnit <= wal::kMaxOwner + 1);
  return leaf / kUnit;
}

/// A chain of before a restart.
struct Survivor {
  wal::Owner owner;
  wal::Position head;
  Replay replay;
  std::optional<wal::Log::Adoption> adoption = std::nullopt;  ///< once it is prepared
};

/// The log's changes of a leaf that was not used since the restart. Throws corrupt.
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
