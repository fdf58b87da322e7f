// Which blocks an index owns (N6, N7), by the rules of index/common/owned.h.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "index/common/codec.h"
#include "index/common/owned.h"
#include "index/common/value_codec.h"
#include "index/fastfair/owned.h"
#include "index/nbtree/entry.h"
#include "index/nbtree/ledger.h"
#include "pm/access.h"

namespace perdix::detail::index::nbtree {

/// The key words of a block that no thread changes.
inline std::vector<Word> words_of(const Block& block) {
  std::vector<Word> words(capacity_of(block));
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = pm::load(block.entries[i].key);
  return words;
}

/// Tells of the blobs of a block's entries. The block is of a leaf with that low bound.
template <class K>
void walk_entries(const Codec<K>& keys, const ValueCodec& values, Block& block, View<K> low,
                  Owned& owned) {
  using Layout = EntryLayout<K>;
  const BlockScan found = scan_block<K>(keys, low, words_of(block));
  // Entries that lost, before what they are compared with: after a crash one of them could be the
  // first of its key, and count.
  for (std::uint64_t left = found.lost; left != 0; left &= left - 1)
    owned.release(pm::set_word(block.entries[std::countr_zero(left)].key, Layout::kDead), {});
  for (std::uint64_t left = found.counts; left != 0; left &= left - 1) {
    Entry& entry = block.entries[std::countr_zero(left)];
    owned.release(
        pm::set_word(entry.key, Layout::kDead),
        blobs_of<K>(values, Layout::key(pm::load(entry.key), low), pm::load(entry.value)));
  }
}

/// Tells of all that the root word leads to, and of what the ledger names. No thread changes the
/// index. Throws corrupt.
template <class K>
void walk(pool::PoolCore& pool, std::uint64_t& root_word, const ValueCodec& values,
          const Ledger& ledger, Owned& owned) {
  const Codec<K> keys(pool);
  Root& root = checked_root(pool, pm::load(root_word));
  if (pm::load(root.signposts) != pm::kNull)
    fastfair::walk<K>(pool, root.signposts, ValueCodec(pool, Kind::u64), {}, owned);
  walk_list(pool, root.first, "an anchor", owned, [&](pm::Offset at) {
    const Anchor& anchor = checked_anchor(pool, at);
    Block& block = checked_block(pool, anchor);
    const Word low = pm::load(anchor.low);
    if (owns_blobs<K>(values)) walk_entries<K>(keys, values, block, keys.view(low), owned);
    OwnedBlocks blocks(pool.offset(&block), block_bytes(capacity_of(block)), "a block");
    // The anchor lies in the root or in a page of the ledger.
    return ListStep{pm::load(block.next), blocks.add_key<K>(low)};
  });
  ledger.walk(owned);
  owned.release(pm::set_word(root_word, pm::kNull),
                OwnedBlocks(pool.offset(&root), sizeof root, "a root"));
}

}  // namespace perdix::detail::index::nbtree
