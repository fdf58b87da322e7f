#include "index/tips/framework.h"

#include "alloc/session.h"
#include "pm/access.h"

namespace perdix::detail::index::tips {

Framework::Framework(pool::PoolCore& pool, Header& header)
    : uno(pool, header), logs(pool, header), reserve(pool, header), pool_(pool), header_(header) {}

void Framework::roll_back_or_finish() {
  if (uno.is_flushed()) {
    logs.recover([](const LoggedWrite&) {});  // finds the rings
    finish_reclamation();
  } else {
    uno.roll_back();
  }
}

void Framework::reclaim(std::uint64_t replayed_to) {
  uno.require_whole();
  if (uno.is_empty() && replayed_to == reclaimed()) return;
  // First: what follows gives up what a rollback would need.
  uno.flush(replayed_to);
  finish_reclamation();
  ++reclamations_;
}

/// Steps 3 to 6 of a reclamation. Recovery calls it, too, if a crash came between them.
void Framework::finish_reclamation() {
  uno.free_freed();
  const OperationLogs::Heads heads = logs.reclaim();
  uno.start_epoch();  // its first fence makes the heads durable
  logs.advance(heads);
  constexpr std::size_t kKeptLogBlocks = 16;
  uno.shrink(kKeptLogBlocks);
}

void Framework::release_spare() {
  uno.shrink(1);
  reserve.release_spare();
}

void Framework::for_each_block(const pool::BlockVisitor& visit) const {
  visit(pool_.offset(&header_));
  uno.for_each_block(visit);
  logs.for_each_block(visit);
  reserve.for_each_block(visit);
}

/// Every commit leaves less; the last one, of the root, frees what all others need.
void Framework::free_all(std::uint64_t& root) {
  reserve.release();
  logs.free_rings();
  uno.shrink(1);
  alloc::Session session = pool_.allocator().session();
  for (const pm::Offset block : {header_.undo, header_.memory, pm::load(root)}) session.free(block);
  session.commit(pm::set_word(root, pm::kNull));
}

}  // namespace perdix::detail::index::tips
