#include "index/elf_table/owned.h"

#include "index/elf/owned.h"
#include "index/elf_table/blocks.h"
#include "index/elf_table/version.h"
#include "index/fastfair/fastfair.h"
#include "pm/access.h"

namespace perdix::detail::index::elf_table {
namespace {

/// A block of `bytes`. A drop that was interrupted may have freed it; else a check misses it.
void walk_block(std::uint64_t& word, std::uint64_t bytes, const char* what, Owned& owned) {
  const pm::Offset block = pm::load(word);
  if (block == pm::kNull && (bytes == 0 || owned.drops())) return;
  owned.release(pm::set_word(word, pm::kNull), OwnedBlocks(block, bytes, what));
}

/// Frees a generation, with its tree unless that is the one that `kept` leads to.
void free_generation(pool::PoolCore& pool, Root& root, unsigned number, std::uint64_t kept) {
  const pm::Offset block = pm::load(root.generations[number]);
  if (block == pm::kNull) return;
  GenerationLayout& generation = checked_generation(pool, block, root.columns);
  if (pm::load(generation.inserted) != kept) InsertedRows::destroy(pool, generation.inserted);
  DroppedBlocks dropped(pool.allocator());
  walk_generation(pool, root, number, dropped);
}

}  // namespace

void walk_generation(const pool::PoolCore& pool, Root& root, unsigned number, Owned& owned) {
  std::uint64_t& word = root.generations[number];
  GenerationLayout& generation = checked_generation(pool, pm::load(word), root.columns);
  elf::walk(pool, generation.elf, owned);
  const std::uint64_t bytes_for_rows = rows_of(generation) * sizeof(std::uint32_t);
  for (std::uint64_t i = 0; i < root.columns; ++i) {
    ColumnLayout& column = columns_of(generation)[i];
    walk_block(column.codes, bytes_for_rows, "a block of codes", owned);
    walk_block(column.keys, pm::load(column.words) * sizeof(std::uint64_t), "a dictionary", owned);
    walk_block(column.bytes, 0, "a block of words", owned);
  }
  if (numbers_of(generation) != pm::kNull)
    walk_block(generation.numbers, bytes_for_rows, "a block of row numbers", owned);
  walk_block(word, bytes_of(generation, root.columns), "a generation", owned);
}

void walk_root(const Root& root, std::uint64_t& root_word, Owned& owned) {
  walk_block(root_word, sizeof root + root.schema_bytes, "a root", owned);
}

void free_spare(pool::PoolCore& pool, Root& root) {
  const GenerationLayout& current =
      checked_generation(pool, pm::load(root.generations[current_of(root)]), root.columns);
  free_generation(pool, root, 1 - current_of(root), pm::load(current.inserted));
}

void free_all(pool::PoolCore& pool, std::uint64_t& root_word) {
  if (pm::load(root_word) == pm::kNull) return;
  Root& root = checked_root(pool, pm::load(root_word));
  // A drop that was interrupted may have freed the current generation, and the spare one before.
  if (pm::load(root.generations[current_of(root)]) != pm::kNull) free_spare(pool, root);
  free_generation(pool, root, current_of(root), pm::kNull);
  DroppedBlocks dropped(pool.allocator());
  walk_root(root, root_word, dropped);
}

}  // namespace perdix::detail::index::elf_table
