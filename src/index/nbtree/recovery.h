// What happens on open and on drop. An index that is new gets its first leaves; of one that exists
// the anchors are read, and the layers above the leaves built from them. The leaves' DRAM sides
// come back later: resumer.h. The pool has resolved the allocator's log before, so the invariants
// of layout.h hold.
//
// Opening writes to PM what it finds out about the ledger's names; a crash during it leaves less to
// do.
#pragma once

#include <array>
#include <chrono>
#include <cstring>
#include <new>
#include <span>
#include <vector>

#include <perdix/error.h>

#include "index/common/retry.h"
#include "index/nbtree/anchors.h"
#include "index/nbtree/block_scan.h"
#include "index/nbtree/nbtree.h"
#include "index/nbtree/reference.h"

namespace perdix::detail::index::nbtree {
inline constexpr std::uint64_t kAllBits = ~std::uint64_t{0};

/// Calls visit(anchor, block, low) for all anchors from there on, ascending. Throws corrupt.
template <class K, class Visit>
void for_each_anchor(const pool::PoolCore& pool, const Codec<K>& keys, pm::Offset first,
                     Visit visit) {
  std::optional<View<K>> previous;
  for (pm::Offset offset = first; offset != pm::kNull;) {
    Anchor& anchor = checked_anchor(pool, offset);
    Block& block = checked_block(pool, anchor);
    const View<K> low = keys.view(pm::load(anchor.low));
    if (previous && !(*previous < low)) throw_corrupt(pool, "an anchor", offset);
    previous = low;
    offset = pm::load(block.next);
    visit(anchor, block, low);
  }
}

/// Gives a new index its root block, and that the first leaf of each region. The root word and
/// `first` are the commits.
template <class K>
void create(pool::PoolCore& pool, const MetadataCopies& copies, std::uint64_t& root_word) {
  const pm::Persister& pm = pool.pm();
  if (pm::load(root_word) == pm::kNull) {
    alloc::Session session = pool.allocator().session();
    const pm::Offset offset = session.reserve(sizeof(Root));
    Root& root = *pool.at<Root>(offset);
    pm.zero(&root, sizeof root);
    pm.store(root.magic, kRootMagic);
    pm.flush(&root, sizeof root);  // log() fences before the root can be linked
    session.commit_when(root_word, kAllBits, offset);
    session.log();
    pm.store(root_word, offset);               // the commit
    pm.flush(&root_word, sizeof(pm::Offset));  // finish() fences: nothing is freed (R3)
    session.finish();
  }
  Root& root = checked_root(pool, pm::load(root_word));
  if (pm::load(root.first) != pm::kNull) return;
  alloc::Session session = pool.allocator().session();
  for (unsigned i = EntryLayout<K>::kRegions; i-- > 0;) {
    const std::size_t bytes = copies.block_bytes(kSmallCapacity);
    const pm::Offset offset = session.reserve(bytes);
    Block& block = *pool.at<Block>(offset);
    pm.zero(&block, bytes);
    pm.store(block.meta, Meta{kSmallCapacity}.pack());
    const bool last = i + 1 == EntryLayout<K>::kRegions;
    pm.store(block.next, last ? pm::kNull : pool.offset(&root.anchors[i + 1]));
    pm.flush(&block, bytes);  // log() fences before it can be linked
    pm.store(root.anchors[i].block, offset);
    pm.store(root.anchors[i].low, EntryLayout<K>::low_of_region(i));
  }
  pm.flush(&root.anchors, sizeof root.anchors);  // as above
  session.commit_when(root.first, kAllBits, pool.offset(root.anchors.data()));
  session.log();
  pm.store(root.first, pool.offset(root.anchors.data()));  // the commit
  pm.flush(&root.first, sizeof root.first);                // finish() fences: nothing is freed (R3)
  session.finish();
}

/// The root of an index, which is created if it is not there. After a crash that goes on where it
/// was.
template <class K>
Root& ready_root(pool::PoolCore& pool, const MetadataCopies& copies, std::uint64_t& root_word) {
  retry_when_full(pool, [&] { create<K>(pool, copies, root_word); });
  return checked_root(pool, pm::load(root_word));
}

template <class K, class Form>
WordTree<K, Form>::WordTree(pool::IndexHandle handle, Kind value_kind, const IndexOptions& options)
    : handle_(std::move(handle)),
      entries_(pool(), value_kind),
      keys_(pool()),
      codec_(pool(), value_kind),
      copies_(pool().pm(), Form::kMetadataInPm),
      upkeep_(pool(), ready_root<K>(pool(), copies_, handle_.root()), entries_, copies_, options) {
  recover();
  upkeep_.resumer.start(options.resume_in_background);
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

template <class K, class Form>
WordTree<K, Form>::~WordTree() {
  upkeep_.resumer.stop();
  try {
    upkeep_.reserve.give_up();
    upkeep_.ledger.free_unlinked();
  } catch (const std::exception&) {
    // What is still named is freed when the index is opened again.
  }
  // The arena takes all with it, but long bounds are mappings of their own.
  for (Position<K>* at = Keys::kInline ? nullptr : head_; at != nullptr;) {
    const Leaf<K>* leaf = at->leaf.load();
    Position<K>* next = is_cold(leaf) ? next_of_cold(leaf) : leaf->next();
    upkeep_.memory.release(at);
    at = next;
  }
}

/// Builds the layers above the leaves, which are cold, and resolves what the ledger says of
/// structure modifications.
template <class K, class Form>
void WordTree<K, Form>::recover() {
  const bool interrupted = upkeep_.ledger.occupied(Ledger::Purpose::modification) != 0;
  const auto anchors = listed_anchors(pool(), keys_, root(), upkeep_.ledger);
  leaves_at_opening_ = anchors.size();
  auto anchor = anchors.begin();
  Position<K>* before = nullptr;
  upkeep_.top.build(anchors.size(), [&](std::span<typename Top<K>::Bound> bounds) {
    std::array<void*, Top<K>::kBuilt> memory;
    upkeep_.memory.arena().allocate(sizeof(Position<K>), std::span(memory.data(), bounds.size()));
    for (std::size_t i = 0; i < bounds.size(); ++i, ++anchor) {
      const Key low = upkeep_.memory.own_bound(anchor->low);
      auto* at = new (memory[i]) Position<K>(*anchor->anchor, low, cold_before<K>(nullptr));
      if (before != nullptr)
        before->leaf.store(cold_before(at), std::memory_order_relaxed);
      else
        head_ = at;
      bounds[i] = {low, at};
      before = at;
    }
  });
  upkeep_.ledger.resolve_all(Ledger::Purpose::modification);
  // A leaf that the crash has left frozen needs a block before anything in it can be erased: one of
  // those that have just been freed.
  if (interrupted) upkeep_.reserve.fill();
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
    session.commit_when(entry.key, kAllBits, EntryLayout<K>::kDead);
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

template <class K, class Form>
void WordTree<K, Form>::destroy(pool::PoolCore& pool, std::uint64_t& root_word, Kind value_kind) {
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
    if (next == first) throw_corrupt(pool, "an anchor", next);
    alloc::Session session = pool.allocator().session();
    session.free(pool.offset(&block));  // its anchor's page is freed below
    Codec<K>::free(session, pm::load(anchor.low));
    session.commit_when(root.first, kAllBits, next);
    session.log();
    pool.pm().publish(root.first, next);  // the commit
    session.finish();
  }
  ledger.destroy();
  alloc::Session session = pool.allocator().session();
  session.free(pool.offset(&root));
  session.commit_when(root_word, kAllBits, pm::kNull);
  session.log();
  pool.pm().publish(root_word, pm::kNull);  // the commit
  session.finish();
}

}  // namespace perdix::detail::index::nbtree
