// What happens on open. A new index gets its first leaf. Of an existing index three
// places are read, whatever its size: the root block, the first leaf, and the log if there is one.
// The rest is restored when it is needed, and in the background (resumer.h). The pool has resolved
// the allocator's log before, so the invariants of layout.h hold.
//
// Opening writes to PM for a new index, for the backup of an index that has none yet, and for the
// first budget of an old one (an empty log).
#pragma once

#include <chrono>
#include <memory>
#include <new>

#include "alloc/session.h"
#include "index/common/retry.h"
#include "index/sptree/leaf_at.h"
#include "index/sptree/replay.h"
#include "index/sptree/sptree.h"

namespace perdix::detail::index::sptree {

template <class K>
WordTree<K>::WordTree(pool::IndexHandle handle, const IndexOptions& options,
                      const wal::Log::Limits& log_limits)
    : handle_(std::move(handle)),
      leaves_(pool(), handle_.info().value_kind),
      orders_(arena_, pool().reclaimer()),
      nodes_(arena_, pool().reclaimer(), orders_),
      buffers_(pool(), arena_, log_limits, leaves_, nodes_),
      leaf_orders_(orders_, leaves_, nodes_, buffers_),
      hints_(arena_, pool().reclaimer(), nodes_, buffers_, top_),
      drain_{pool().reclaimer()},
      top_(arena_, pool().reclaimer()),
      backup_(pool(), [this](Key low, pm::Offset leaf) { back_up(low, leaf); }),
      structure_({pool(), leaves_, nodes_, buffers_, hints_, top_, backup_}),
      resumer_({pool(), leaves_, nodes_, buffers_, hints_, top_, backup_}, [this] {
        if (has_log()) buffers_.tidy_up(Upkeep{*this});
      }) {
  const auto start = std::chrono::steady_clock::now();
  orders_.set_budget(options.scan_budget);
  if (pm::load(handle_.root()) == pm::kNull) retry_when_full(pool(), [&] { create(); });
  Root& root = root_at(pool(), pm::load(handle_.root()));
  backup_.open(root.backup);
  if (index::has_log(pool(), root.log, options.dram_budget != 0))
    retry_when_full(pool(), [&] { open_log(pm::load(root.log), options.dram_budget); });
  resumer_.start(pm::load(root.first), options.resume_in_background);
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  entry_.emplace(pool().open_indexes(), *this);
}

/// Opens the log, with buffers and hints as the budget allows.
template <class K>
void WordTree<K>::open_log(pm::Offset log, std::uint64_t budget) {
  const std::uint64_t of_hints = NodeHints<K>::share_of(budget);
  const bool unlimited = budget == IndexOptions::kUnlimited;
  hints_.set_budget(of_hints);
  buffers_.open_log(pool(), log, unlimited ? budget : budget - of_hints);
}

/// Gives a new index its root block and its first leaf, which is empty and responsible for all
/// keys. The root word is the commit.
template <class K>
void WordTree<K>::create() {
  alloc::Session session = pool().allocator().session();
  const pm::Offset offset = session.reserve(sizeof(Leaf));
  Leaf& leaf = *pool().template at<Leaf>(offset);
  pm().store(leaf.magic, kLeafMagic);
  pm().zero(&leaf.link, offsetof(Leaf, pairs) - offsetof(Leaf, link));
  pm().flush(&leaf, offsetof(Leaf, pairs));  // as below: log() fences before the root can be linked
  const pm::Offset root_offset = session.reserve(sizeof(Root));
  Root& root = *pool().template at<Root>(root_offset);
  pm().store(root.magic, kRootMagic);
  pm().store(root.first, offset);
  pm().store(root.log, pm::kNull);
  pm().store(root.backup, pm::kNull);
  pm().flush(&root, sizeof root);  // log() fences it, too
  session.commit_when(handle_.root(), ~std::uint64_t{0}, root_offset);
  session.log();
  pm().store(handle_.root(), root_offset);          // the commit
  pm().flush(&handle_.root(), sizeof root_offset);  // finish() fences: nothing is freed (rule R3)
  session.finish();
}

}  // namespace perdix::detail::index::sptree
