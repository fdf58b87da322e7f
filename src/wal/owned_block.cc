#include "wal/owned_block.h"

#include <fmt/format.h>

#include "alloc/session.h"
#include "pm/access.h"
#include "pool/checked.h"

namespace perdix::detail::wal {

void allocate_into(pool::PoolCore& pool, pm::Offset& word, std::uint64_t bytes) {
  alloc::Session session = pool.allocator().session();
  const pm::Offset block = session.reserve(bytes);
  session.commit_when(word, ~std::uint64_t{0}, block);
  session.log();
  pool.pm().store(word, block);         // the commit
  pool.pm().flush(&word, sizeof word);  // finish() fences: nothing is freed (rule R3)
  session.finish();
}

void free_from(pool::PoolCore& pool, pm::Offset& word) {
  const pm::Offset block = pm::load(word);
  if (block == pm::kNull) return;
  if (!pool.allocator().validate_block(block, 1)) {
    throw_corrupt(pool, fmt::format("no block is allocated at offset {:#x}", block));
  }
  alloc::Session session = pool.allocator().session();
  session.free(block);
  session.commit_when(word, ~std::uint64_t{0}, pm::kNull);
  session.log();
  pool.pm().publish(word, pm::kNull);  // the commit
  session.finish();
}

void throw_corrupt(const pool::PoolCore& pool, const std::string& what) {
  pool::throw_damaged(pool, fmt::format("the log of an index is damaged: {}", what));
}

}  // namespace perdix::detail::wal
