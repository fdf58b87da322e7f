// Frees all of an index that is being dropped, in steps of one commit each, so that it can begin
// again after a crash. No other thread uses the index.
#pragma once

#include <cstdint>
#include <optional>

#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/owned.h"
#include "pm/access.h"

namespace perdix::detail::index::nbtree {

/// Finds what the ledger names and the index reaches. Throws corrupt.
template <class K>
void reach_all(pool::PoolCore& pool, const ValueCodec& values, const Root& root, Ledger& ledger) {
  const Codec<K> keys(pool);
  UnresolvedBlocks& blocks = ledger.unresolved(Ledger::Purpose::modification);
  UnresolvedBlocks& blobs = ledger.unresolved(Ledger::Purpose::operation);
  if (blocks.empty() && blobs.empty()) return;
  std::optional<View<K>> previous;
  for (pm::Offset offset = pm::load(root.first); offset != pm::kNull;) {
    const Anchor& anchor = checked_anchor(pool, offset);
    const Block& block = checked_block(pool, anchor);
    const View<K> low = keys.view(pm::load(anchor.low));
    if (previous && !(*previous < low)) pool::throw_corrupt(pool, "an anchor", offset);
    previous = low;
    blocks.reached_leaf<K>(offset, pm::load(anchor.low), pool.offset(&block));
    for (std::uint64_t left = scan_block<K>(keys, low, words_of(block)).counts; left != 0;
         left &= left - 1) {
      const Entry& entry = block.entries[std::countr_zero(left)];
      blobs.reached_entry<K>(values, EntryLayout<K>::key(pm::load(entry.key), low),
                             pm::load(entry.value));
    }
    offset = pm::load(block.next);
  }
}

/// Frees all blocks of an index and clears its root word. What the ledger names and is not in use
/// goes first, so that each block that is left is reached in one way.
template <class K>
void destroy_index(pool::PoolCore& pool, std::uint64_t& root_word, Kind value_kind) {
  if (pm::load(root_word) == pm::kNull) return;
  Root& root = checked_root(pool, pm::load(root_word));
  const ValueCodec values(pool, value_kind);
  Ledger ledger(pool, root);
  reach_all<K>(pool, values, root, ledger);
  ledger.resolve_all(Ledger::Purpose::modification);
  ledger.resolve_all(Ledger::Purpose::operation);
  DroppedBlocks dropped(pool.allocator());
  walk<K>(pool, root_word, values, ledger, dropped);
}

}  // namespace perdix::detail::index::nbtree
