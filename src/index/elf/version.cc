#include "index/elf/version.h"

#include "index/elf/shape.h"
#include "pool/checked.h"

namespace perdix::detail::index::elf {
namespace {

/// The table at an offset, which counts (L1). Throws corrupt. Not for a table that an unfinished
/// build left: its `tids` and `rows` may not be set yet.
TableLayout& checked_complete_table(const pool::PoolCore& pool, pm::Offset offset) {
  TableLayout& table = checked_table(pool, offset);
  const std::uint64_t tids = pm::load(table.tids);
  if (tids > kMaxTids || pm::load(table.rows) > tids) pool::throw_corrupt(pool, "a table", offset);
  return table;
}

/// The bits of a table's dead rows; null if it has no TIDs.
std::uint64_t* checked_dead(pool::PoolCore& pool, const TableLayout& table) {
  const std::uint64_t tids = pm::load(table.tids);
  const pm::Offset block = pm::load(table.dead);
  if (tids == 0 && block == pm::kNull) return nullptr;
  const std::uint64_t bytes = DeadRows::words_for(tids) * sizeof(std::uint64_t);
  if (!pool.allocator().validate_block(block, bytes))
    pool::throw_corrupt(pool, "bits of dead rows", block);
  return pool.at<std::uint64_t>(block);
}

}  // namespace

Root& checked_root(const pool::PoolCore& pool, pm::Offset offset) {
  const auto valid = [](const Root& root) {
    return pm::load(root.magic) == kRootMagic && root.dimensions >= 1 &&
           root.dimensions <= kMaxDimensions && elf::valid({root.slot_shift, root.segment_rows}) &&
           pm::load(root.current) <= 1;
  };
  return pool::checked<Root>(pool, offset, "a root", valid);
}

TableLayout& checked_table(const pool::PoolCore& pool, pm::Offset offset) {
  const auto valid = [&](const TableLayout& table) {
    const std::uint64_t slots = pm::load(table.slots);
    return pm::load(table.magic) == kTableMagic && slots <= pool.size() / sizeof slots &&
           pool.contains(offset, sizeof table + slots * sizeof slots);
  };
  return pool::checked<TableLayout>(pool, offset, "a table", valid);
}

Version::Version(pool::PoolCore& pool, const Root& root, pm::Offset offset)
    : table_(checked_complete_table(pool, offset)),
      generation_(pm::load(table_.generation)),
      tids_(pm::load(table_.tids)),
      dead_(checked_dead(pool, table_)),
      lists_(pool, table_, root),
      erased_(pm::load(table_.erased) != 0) {}

}  // namespace perdix::detail::index::elf
