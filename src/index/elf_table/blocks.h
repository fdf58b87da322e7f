// The blocks of an ElfTable: making them, walking over them, and freeing them so that a crash in
// between is continued by the next call.
//
// A block is made and freed by an allocator session whose commit sets or clears the word that leads
// to it. So each word leads to an allocated block, or is 0, at every moment, and the blocks of an
// unfinished build are reached from the generation word that does not count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "index/elf_table/layout.h"
#include "index/elf_table/schema.h"
#include "pm/access.h"
#include "pm/offset.h"
#include "pool/checked.h"
#include "pool/open_index.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::elf_table {

/// The Root that the root word leads to. Throws corrupt.
Root& checked_root(const pool::PoolCore& pool, pm::Offset offset);

/// The columns that a Root has. Throws corrupt.
Schema schema_of(const pool::PoolCore& pool, const Root& root);

/// A generation of a table with this many columns. Throws corrupt.
GenerationLayout& checked_generation(const pool::PoolCore& pool, pm::Offset offset,
                                     std::uint64_t columns);

inline bool is_of_first_format(const GenerationLayout& generation) {
  return pm::load(generation.magic) == kFirstGenerationMagic;
}

inline ColumnLayout* columns_of(GenerationLayout& generation) {
  const std::size_t head =
      is_of_first_format(generation) ? kFirstGenerationBytes : sizeof generation;
  return reinterpret_cast<ColumnLayout*>(reinterpret_cast<std::byte*>(&generation) + head);
}

/// How many slots a generation has, and the block of their TIDs.
inline std::uint64_t rows_of(const GenerationLayout& generation) {
  return pm::load(is_of_first_format(generation) ? generation.tids : generation.rows);
}
inline pm::Offset numbers_of(const GenerationLayout& generation) {
  return is_of_first_format(generation) ? pm::kNull : pm::load(generation.numbers);
}

inline unsigned current_of(const Root& root) { return pm::load(root.current) == 0 ? 0 : 1; }

/// The array of `count` elements at an offset. Throws corrupt.
template <class T>
T* checked_array(const pool::PoolCore& pool, pm::Offset offset, std::uint64_t count,
                 std::string_view what) {
  const bool sound = offset % alignof(T) == 0 && count <= pool.size() / sizeof(T) &&
                     pool.contains(offset, count * sizeof(T));
  if (!sound) pool::throw_corrupt(pool, what, offset);
  return reinterpret_cast<T*>(pool.base() + offset);
}

/// Makes the root and the first generation, which is empty, in one commit.
void create_root(pool::PoolCore& pool, std::uint64_t& root_word, const Schema& schema);

/// Makes an empty generation behind a word that is 0.
GenerationLayout& add_generation(pool::PoolCore& pool, std::uint64_t& word, std::uint64_t columns);

/// Makes a block of these contents behind a word that is 0, durably. Nothing if there are none.
void add_block(pool::PoolCore& pool, std::uint64_t& word, std::span<const std::byte> contents);

/// Frees the generation that does not count, if there is one (T1), but not a tree that belongs to
/// the other one (T7). No caller may have it open.
void free_spare(pool::PoolCore& pool, Root& root);

/// Frees everything that the root word leads to, and clears it.
void free_all(pool::PoolCore& pool, std::uint64_t& root_word);

/// Shows the blocks of generation `number`, 0 or 1, but not those of its Elf and its tree. Throws
/// corrupt.
void for_each_own_block(const pool::PoolCore& pool, const Root& root, unsigned number,
                        const pool::BlockVisitor& visit);

}  // namespace perdix::detail::index::elf_table
