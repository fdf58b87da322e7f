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
  report.blocks = pages_->extents() + 1;
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
  visit(pool().offset(header_));
  pages_->for_each_block(visit);
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
  pages_->for_each_block(
      [&](pm::Offset block) { stats.pm_bytes += pool().allocator().block_size(block); });
  return stats;
}

}  // namespace perdix::detail::index::tips_of
