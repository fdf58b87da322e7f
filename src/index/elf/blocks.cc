#include "index/elf/blocks.h"

#include "alloc/session.h"
#include "index/elf/shape.h"
#include "index/elf/version.h"
#include "pm/access.h"
#include "pool/checked.h"

namespace perdix::detail::index::elf {
namespace {

std::uint64_t* slots_of(TableLayout& table) { return reinterpret_cast<std::uint64_t*>(&table + 1); }

unsigned current_of(const Root& root) { return pm::load(root.current) == 0 ? 0 : 1; }

/// Frees the block that a word leads to, and has it lead to `next` instead.
void free_block(pool::PoolCore& pool, std::uint64_t& word, pm::Offset next = pm::kNull) {
  const pm::Offset block = pm::load(word);
  if (block == next) return;
  alloc::Session session = pool.allocator().session();
  session.free(block);
  session.commit(pm::set_word(word, next));
}

SegmentLayout& segment_at(const pool::PoolCore& pool, pm::Offset offset) {
  return pool::checked_by_magic<SegmentLayout>(pool, offset, "a segment", kSegmentMagic);
}

/// The segment before which those of a table end, if the table does not count: the current table
/// continues from there. An unfinished table has no segments, so its end is its begin.
pm::Offset end_of_spare_segments(const TableLayout& spare, const TableLayout& current) {
  const bool replaced = pm::load(spare.generation) < pm::load(current.generation);
  return pm::load(replaced ? current.segments : spare.segments);
}

void free_segments(pool::PoolCore& pool, TableLayout& table, pm::Offset end) {
  for (pm::Offset first = pm::load(table.segments); first != pm::kNull && first != end;
       first = pm::load(table.segments)) {
    free_block(pool, table.segments, pm::load(segment_at(pool, first).next));
  }
}

/// Segments up to `end` first: the chain must not lose its begin. The table's block last: it leads
/// to all others.
void free_table(pool::PoolCore& pool, std::uint64_t& word, TableLayout& table, pm::Offset end) {
  free_segments(pool, table, end);
  const std::uint64_t slots = pm::load(table.slots);
  for (std::uint64_t i = 0; i < slots; ++i) free_block(pool, slots_of(table)[i]);
  free_block(pool, table.dead);
  free_block(pool, table.first_list);
  free_block(pool, word);
}

void visit_table(const pool::PoolCore& pool, pm::Offset offset, pm::Offset end,
                 const pool::BlockVisitor& visit) {
  TableLayout& table = checked_table(pool, offset);
  const auto show = [&](pm::Offset block) {
    if (block != pm::kNull) visit(block);
  };
  show(offset);
  for (std::uint64_t i = 0; i < pm::load(table.slots); ++i) show(pm::load(slots_of(table)[i]));
  show(pm::load(table.dead));
  show(pm::load(table.first_list));
  std::uint64_t left = pool.size() / sizeof(SegmentLayout);  // a damaged chain may be a ring
  for (pm::Offset at = pm::load(table.segments); at != pm::kNull && at != end;) {
    if (left-- == 0) pool::throw_corrupt(pool, "a ring of segments", at);
    show(at);
    at = pm::load(segment_at(pool, at).next);
  }
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

bool free_spare(pool::PoolCore& pool, Root& root) {
  const unsigned current = current_of(root);
  std::uint64_t& word = root.tables[1 - current];
  if (pm::load(word) == pm::kNull) return false;
  TableLayout& spare = checked_table(pool, pm::load(word));
  const TableLayout& counts = checked_table(pool, pm::load(root.tables[current]));
  free_table(pool, word, spare, end_of_spare_segments(spare, counts));
  return true;
}

void free_all(pool::PoolCore& pool, std::uint64_t& root_word) {
  if (pm::load(root_word) == pm::kNull) return;
  Root& root = checked_root(pool, pm::load(root_word));
  std::uint64_t& word = root.tables[current_of(root)];
  if (pm::load(word) != pm::kNull) {
    free_spare(pool, root);
    free_table(pool, word, checked_table(pool, pm::load(word)), pm::kNull);
  }
  free_block(pool, root_word);
}

void for_each_block_of(const pool::PoolCore& pool, pm::Offset root_block,
                       const pool::BlockVisitor& visit) {
  const Root& root = checked_root(pool, root_block);
  const unsigned current = current_of(root);
  const TableLayout& counts = checked_table(pool, pm::load(root.tables[current]));
  visit(root_block);
  visit_table(pool, pm::load(root.tables[current]), pm::kNull, visit);
  const pm::Offset spare = pm::load(root.tables[1 - current]);
  if (spare == pm::kNull) return;
  visit_table(pool, spare, end_of_spare_segments(checked_table(pool, spare), counts), visit);
}

}  // namespace perdix::detail::index::elf
