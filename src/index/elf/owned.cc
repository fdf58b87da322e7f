#include "index/elf/owned.h"

#include "index/elf/dead_rows.h"
#include "index/elf/segment.h"
#include "index/elf/version.h"
#include "pm/access.h"
#include "pool/checked.h"

namespace perdix::detail::index::elf {
namespace {

unsigned current_of(const Root& root) { return pm::load(root.current) == 0 ? 0 : 1; }

/// The segment before which those of a table end, if the table does not count: the current table
/// continues from there. An unfinished table has no segments, so its end is its begin.
pm::Offset end_of_spare_segments(const TableLayout& spare, const TableLayout& current) {
  const bool replaced = pm::load(spare.generation) < pm::load(current.generation);
  return pm::load(replaced ? current.segments : spare.segments);
}

void walk_block(std::uint64_t& word, std::uint64_t bytes, const char* what, Owned& owned) {
  const pm::Offset block = pm::load(word);
  if (block != pm::kNull)
    owned.release(pm::set_word(word, pm::kNull), OwnedBlocks(block, bytes, what));
}

/// A table that a word of the root leads to, with its segments up to `end`. Reads each word once:
/// elf_stats() walks while a build clears them.
void walk_table(const pool::PoolCore& pool, const Root& root, std::uint64_t& word,
                TableLayout& table, pm::Offset end, Owned& owned) {
  const auto segment = [&](pm::Offset at) {
    const auto& layout =
        pool::checked_by_magic<SegmentLayout>(pool, at, "a segment", kSegmentMagic);
    const pm::Offset next = pm::load(layout.next);
    return ListStep{next == end ? pm::kNull : next, {at, Segment::bytes_for(root), "a segment"}};
  };
  const pm::Offset first = pm::load(table.segments);
  if (first != end) walk_list(pool, table.segments, first, "a ring of segments", owned, segment);
  const std::uint64_t slots = pm::load(table.slots);
  auto* const words = reinterpret_cast<std::uint64_t*>(&table + 1);
  for (std::uint64_t i = 0; i < slots; ++i) walk_block(words[i], 1, "a block of lists", owned);
  // An unfinished table may not say yet how many bits it has.
  const std::uint64_t bits = DeadRows::words_for(pm::load(table.tids)) * sizeof(std::uint64_t);
  walk_block(table.dead, bits, "a block of bits of dead rows", owned);
  walk_block(table.first_list, sizeof(FirstList), "a first list", owned);
  owned.release(pm::set_word(word, pm::kNull),
                OwnedBlocks(pool.offset(&table), sizeof table + slots * sizeof *words, "a table"));
}

/// The table that does not count, if there is one. Returns whether there was one.
bool walk_spare(const pool::PoolCore& pool, Root& root, unsigned current, Owned& owned) {
  std::uint64_t& word = root.tables[1 - current];
  const pm::Offset block = pm::load(word);
  if (block == pm::kNull) return false;
  TableLayout& spare = checked_table(pool, block);
  const TableLayout& counts = checked_table(pool, pm::load(root.tables[current]));
  walk_table(pool, root, word, spare, end_of_spare_segments(spare, counts), owned);
  return true;
}

}  // namespace

/// The spare table first: it ends where the current one continues.
void walk(const pool::PoolCore& pool, std::uint64_t& root_word, Owned& owned) {
  if (pm::load(root_word) == pm::kNull) return;
  Root& root = checked_root(pool, pm::load(root_word));
  const unsigned current = current_of(root);
  walk_spare(pool, root, current, owned);
  std::uint64_t& word = root.tables[current];
  const pm::Offset block = pm::load(word);
  // A drop that was interrupted may have freed it.
  if (block != pm::kNull)
    walk_table(pool, root, word, checked_table(pool, block), pm::kNull, owned);
  walk_block(root_word, sizeof root, "a root", owned);
}

bool free_spare(pool::PoolCore& pool, Root& root) {
  DroppedBlocks dropped(pool.allocator());
  return walk_spare(pool, root, current_of(root), dropped);
}

}  // namespace perdix::detail::index::elf
