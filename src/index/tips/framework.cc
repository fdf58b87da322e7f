#include "index/tips/framework.h"

#include "pm/access.h"

namespace perdix::detail::index::tips {

Framework::Framework(pool::PoolCore& pool, std::uint64_t& root, Header& header)
    : reserve(pool, pool.claim_of(root)),
      uno(pool, header, reserve.claim()),
      logs(pool, header),
      pool_(pool),
      root_(root),
      header_(header) {}

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

void Framework::release_spare(const Need& alike) {
  uno.shrink(1);
  reserve.release_spare(alike);
}

/// Both logs keep their first blocks to the end: opening requires them.
void Framework::walk(Owned& owned) const {
  logs.walk(owned);
  uno.walk(owned);
  OwnedBlocks rest(pool_.offset(&header_), sizeof header_ + header_.object_bytes, "a header");
  rest.add(header_.undo, kUndoBytes, "a block of a log");
  rest.add(header_.memory, kMemoryBytes, "a block of a log");
  owned.release(pm::set_word(root_, pm::kNull), rest);
}

}  // namespace perdix::detail::index::tips
