// The blocks of an ElfTable: what they hold, and making them. A block is made by an allocator
// session whose commit sets the word that leads to it.
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

inline std::size_t head_bytes(const GenerationLayout& generation) {
  return is_of_first_format(generation) ? kFirstGenerationBytes : sizeof generation;
}

/// Of the block of a generation with this many columns.
inline std::uint64_t bytes_of(const GenerationLayout& generation, std::uint64_t columns) {
  return head_bytes(generation) + columns * sizeof(ColumnLayout);
}

inline ColumnLayout* columns_of(GenerationLayout& generation) {
  return reinterpret_cast<ColumnLayout*>(reinterpret_cast<std::byte*>(&generation) +
                                         head_bytes(generation));
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

}  // namespace perdix::detail::index::elf_table
