// What happens on open. A new index gets its first leaves. Of an existing index the anchors are
// read, and the layers above the leaves are built from them. The leaves' DRAM sides come back later
// (resumer.h). The pool has resolved the allocator's log before, so the invariants
// of layout.h hold.
//
// Opening frees what the ledger names and the index does not reach. After a crash during that, the
// next opening goes on with the rest.
#pragma once

#include <array>
#include <chrono>
#include <new>
#include <span>

#include <perdix/error.h>

#include "index/common/retry.h"
#include "index/nbtree/anchors.h"
#include "index/nbtree/nbtree.h"
#include "index/nbtree/reference.h"

namespace perdix::detail::index::nbtree {

/// Gives a new index its root block, and the root block the first leaf of each region. The root
/// word and `first` are the commits. After a crash between the two it goes on with the leaves.
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
    session.commit_when(root_word, ~std::uint64_t{0}, offset);
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
  session.commit_when(root.first, ~std::uint64_t{0}, pool.offset(root.anchors.data()));
  session.log();
  pm.store(root.first, pool.offset(root.anchors.data()));  // the commit
  pm.flush(&root.first, sizeof root.first);                // finish() fences: nothing is freed (R3)
  session.finish();
}

/// The root of an index, which is created if it is not there or not complete.
template <class K>
Root& ready_root(pool::PoolCore& pool, const MetadataCopies& copies, std::uint64_t& root_word) {
  retry_when_full(pool, [&] { create<K>(pool, copies, root_word); });
  return checked_root(pool, pm::load(root_word));
}

template <class K, class Form>
WordTree<K, Form>::WordTree(pool::IndexHandle handle, const IndexOptions& options)
    : handle_(std::move(handle)),
      entries_(pool(), handle_.info().value_kind),
      keys_(pool()),
      codec_(pool(), handle_.info().value_kind),
      copies_(pool().pm(), Form::kMetadataInPm),
      upkeep_(pool(), ready_root<K>(pool(), copies_, handle_.root()), entries_, copies_, options) {
  recover();
  upkeep_.resumer.start(options.resume_in_background);
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  entry_.emplace(pool().open_indexes(), *this);
}

template <class K, class Form>
WordTree<K, Form>::~WordTree() {
  entry_.reset();  // first: the pool calls no index that is going away
  upkeep_.resumer.stop();
  try {
    upkeep_.reserve.give_up();
    upkeep_.ledger.free_unlinked();
  } catch (const std::exception&) {
    // What is still named is freed when the index is opened again.
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
  upkeep_.top.build(anchors.size(), [&](std::span<typename Top<K>::Bound> bounds) {
    std::array<void*, Top<K>::kBuildFanout> memory;
    upkeep_.memory.arena().allocate(sizeof(Position<K>), std::span(memory.data(), bounds.size()));
    for (std::size_t i = 0; i < bounds.size(); ++i, ++anchor) {
      Position<K>& at = upkeep_.positions.add_cold(memory[i], *anchor->anchor, anchor->low);
      bounds[i] = {at.low(), &at};
    }
  });
  upkeep_.ledger.resolve_all(Ledger::Purpose::modification);
  // A leaf that the crash has left frozen needs a block before anything in it can be erased: one of
  // those that have just been freed.
  if (interrupted) upkeep_.reserve.fill();
}

}  // namespace perdix::detail::index::nbtree
