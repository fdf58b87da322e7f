// Blocks of a pool, for subjects: linking one, a zeroed root, a census, and waiting until those
// that were freed can be used again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <perdix/error.h>
#include <perdix/pool.h>

#include "alloc/calloc.h"
#include "epoch/reclaimer.h"
#include "pool/pool_core.h"
#include "testing/subject.h"

namespace perdix::testing {

/// Waits until all that was freed can be allocated again: what is retired is disposed of, and then
/// what that has freed has its grace period too. Else the clock decides which blocks come next. The
/// caller must be in no epoch::Guard.
inline void settle(detail::alloc::Calloc& calloc, detail::epoch::Reclaimer& reclaimer) {
  reclaimer.drain();
  calloc.reclaim();
}

inline void settle(detail::pool::PoolCore& core) { settle(core.allocator(), core.reclaimer()); }

/// Links the block that `make(session)` reserves and flushes: it is allocated exactly if `word`
/// names it.
template <class Make>
void link_block(detail::pool::PoolCore& core, std::uint64_t& word, Make make) {
  detail::alloc::Session session = core.allocator().session();
  const detail::pm::Offset block = make(session);
  session.commit_when(word, ~std::uint64_t{0}, block);
  session.log();                   // fences what was flushed
  core.pm().publish(word, block);  // the commit
  session.finish();
}

/// The root block of an index, made of zeros if there is none yet.
template <class Root>
Root& root_of(detail::pool::PoolCore& core, detail::pool::IndexHandle& handle) {
  if (handle.root() == detail::pm::kNull) {
    link_block(core, handle.root(), [&](detail::alloc::Session& session) {
      const detail::pm::Offset block = session.reserve(sizeof(Root));
      core.pm().zero(core.at<Root>(block), sizeof(Root));
      core.pm().flush(core.at<Root>(block), sizeof(Root));  // log() fences
      return block;
    });
  }
  return *core.at<Root>(handle.root());
}

/// The index "t" goes, and `open()` makes an empty one of that name. `table` has it.
template <class Table, class Open>
void drop_and_open(Pool& pool, std::optional<Table>& table, Open open) {
  table.reset();
  pool.drop("t");
  settle(*pool.core());
  open();
}

/// call(), unless another thread is in one that excludes it.
template <class Call>
void unless_in_use(Call call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.code() != Errc::in_use) throw;
  }
}

/// A problem unless exactly the blocks in use, each once, are allocated.
inline void expect_allocated(detail::alloc::Calloc& calloc, std::vector<detail::pm::Offset> in_use,
                             Problems& problems) {
  std::vector<detail::pm::Offset> allocated;
  calloc.for_each_allocated(
      [&](detail::pm::Offset block, std::uint64_t) { allocated.push_back(block); });
  std::sort(in_use.begin(), in_use.end());
  if (in_use != allocated) {
    problems.push_back(fmt::format("{} blocks are allocated and {} in use, or not the same ones",
                                   allocated.size(), in_use.size()));
  }
}

}  // namespace perdix::testing
