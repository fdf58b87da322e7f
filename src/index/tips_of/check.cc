// Verification of what layout.h states (O1 to O4), the blocks of an index, and statistics.
#include <mutex>

#include <perdix/error.h>

#include "index/common/problems.h"
#include "index/tips_of/tips_of.h"

namespace perdix::detail::index::tips_of {

CheckReport Table::check() const {
  CheckReport report;
  Problems problems(report);
  const std::shared_lock lock(mutex_);
  if (header_ == nullptr) return report;
  AuditedBlocks audited(pool().allocator(), report, "O2");
  pages_->walk(handle_.root(), audited);
  if (pages_->extents() == 0) return report;
  blocks_->check(header_->bytes, problems);
  if (type_.count != nullptr && report.ok() && arena().constructed != 0) {
    problems.expect(type_.count(container(), report.pairs),
                    "size() is not the number of elements that the container shows, {}",
                    report.pairs);
    problems.expect(type_.finds(container()),
                    "the container, or one in its elements, does not find a key that it shows");
  }
  return report;
}

void Table::for_each_block(const pool::BlockVisitor& visit) const {
  const std::shared_lock lock(mutex_);
  if (header_ == nullptr) return;
  ShownBlocks shown(visit);
  pages_->walk(handle_.root(), shown);
}

TipsOfStats Table::container_stats() const {
  const std::shared_lock lock(mutex_);
  return {pages_->count(), arena().live_bytes, blocks_->free_bytes(), pages_->commits(),
          pages_->copied()};
}

IndexStats Table::stats() const {
  IndexStats stats;
  const std::shared_lock lock(mutex_);
  if (header_ == nullptr) return stats;
  stats.leaves = pages_->count();
  const pool::BlockVisitor add = [&](pm::Offset block) {
    stats.pm_bytes += pool().allocator().block_size(block);
  };
  ShownBlocks shown(add);
  pages_->walk(handle_.root(), shown);
  return stats;
}

}  // namespace perdix::detail::index::tips_of
