// Frees all of an index that is being dropped, in steps of one commit each, so that it can begin
// again after a crash. No other thread uses the index.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "alloc/session.h"
#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "index/nbtree/entry.h"
#include "index/nbtree/ledger.h"
#include "pm/access.h"

namespace perdix::detail::index::nbtree {

/// Calls visit(anchor, block, low) for the anchors from `first` on, ascending. Throws corrupt.
template <class K, class Visit>
void for_each_anchor(const pool::PoolCore& pool, const Codec<K>& keys, pm::Offset first,
                     Visit visit) {
  std::optional<View<K>> previous;
  for (pm::Offset offset = first; offset != pm::kNull;) {
    Anchor& anchor = checked_anchor(pool, offset);
    Block& block = checked_block(pool, anchor);
    const View<K> low = keys.view(pm::load(anchor.low));
    if (previous && !(*previous < low)) pool::throw_corrupt(pool, "an anchor", offset);
    previous = low;
    offset = pm::load(block.next);
    visit(anchor, block, low);
  }
}

/// The key words of a block that no thread changes.
inline std::vector<Word> words_of(const Block& block) {
  std::vector<Word> words(capacity_of(block));
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = pm::load(block.entries[i].key);
  return words;
}

/// Frees the blobs of a block's entries, each with its key word as commit.
template <class K>
void free_entries(pool::PoolCore& pool, const Codec<K>& keys, const ValueCodec& values,
                  Block& block, View<K> low) {
  const BlockScan found = scan_block<K>(keys, low, words_of(block));
  // Those that lost first, as long as there is something to compare with: after a crash one of them
  // could be the first of its key, and count.
  for (std::uint64_t left = found.lost; left != 0; left &= left - 1) {
    Entry& entry = block.entries[__builtin_ctzll(left)];
    pool.pm().store(entry.key, EntryLayout<K>::kDead);
    pool.pm().flush(&entry.key, sizeof entry.key);  // log() below fences before any is freed
  }
  for (std::uint64_t left = found.counts; left != 0; left &= left - 1) {
    Entry& entry = block.entries[__builtin_ctzll(left)];
    alloc::Session session = pool.allocator().session();
    Codec<K>::free(session, EntryLayout<K>::key(pm::load(entry.key), low));
    values.free(session, pm::load(entry.value));
    session.commit_when(entry.key, ~std::uint64_t{0}, EntryLayout<K>::kDead);
    session.log();
    pool.pm().publish(entry.key, EntryLayout<K>::kDead);  // the commit
    session.finish();
  }
}

/// Frees what the ledger names and is not in use, so that what is in use can be freed.
template <class K>
void resolve_ledger(pool::PoolCore& pool, const Codec<K>& keys, const ValueCodec& values,
                    Root& root, Ledger& ledger) {
  UnresolvedBlocks& blocks = ledger.unresolved(Ledger::Purpose::modification);
  UnresolvedBlocks& blobs = ledger.unresolved(Ledger::Purpose::operation);
  const auto reach = [&](Anchor& anchor, Block& block, View<K> low) {
    blocks.reached(pool.offset(&anchor) | kAnchorTag);
    blocks.reached(pool.offset(&block));
    blocks.reached_key<K>(pm::load(anchor.low));
    for (std::uint64_t left = scan_block<K>(keys, low, words_of(block)).counts; left != 0;
         left &= left - 1) {
      const Entry& entry = block.entries[__builtin_ctzll(left)];
      blobs.reached_entry<K>(values, EntryLayout<K>::key(pm::load(entry.key), low),
                             pm::load(entry.value));
    }
  };
  if (!blocks.empty() || !blobs.empty())
    for_each_anchor<K>(pool, keys, pm::load(root.first), reach);
  ledger.resolve_all(Ledger::Purpose::modification);
  ledger.resolve_all(Ledger::Purpose::operation);
}

/// Frees all blocks of an index and clears its root word.
template <class K>
void destroy_index(pool::PoolCore& pool, std::uint64_t& root_word, Kind value_kind) {
  if (pm::load(root_word) == pm::kNull) return;
  Root& root = checked_root(pool, pm::load(root_word));
  const Codec<K> keys(pool);
  const ValueCodec values(pool, value_kind);
  Ledger ledger(pool, root);
  resolve_ledger<K>(pool, keys, values, root, ledger);
  for (pm::Offset first = pm::load(root.first); first != pm::kNull; first = pm::load(root.first)) {
    Anchor& anchor = checked_anchor(pool, first);
    Block& block = checked_block(pool, anchor);
    if (!Codec<K>::kInline || !values.is_inline())
      free_entries<K>(pool, keys, values, block, keys.view(pm::load(anchor.low)));
    const pm::Offset next = pm::load(block.next);
    if (next == first) pool::throw_corrupt(pool, "an anchor", next);
    alloc::Session session = pool.allocator().session();
    session.free(pool.offset(&block));  // its anchor's page is freed below
    Codec<K>::free(session, pm::load(anchor.low));
    session.commit_when(root.first, ~std::uint64_t{0}, next);
    session.log();
    pool.pm().publish(root.first, next);  // the commit
    session.finish();
  }
  ledger.destroy();
  alloc::Session session = pool.allocator().session();
  session.free(pool.offset(&root));
  session.commit_when(root_word, ~std::uint64_t{0}, pm::kNull);
  session.log();
  pool.pm().publish(root_word, pm::kNull);  // the commit
  session.finish();
}

}  // namespace perdix::detail::index::nbtree
