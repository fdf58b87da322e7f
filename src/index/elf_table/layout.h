// What an ElfTable keeps in PM, and nothing else. docs/format/elf_table.md describes it.
//
// Invariants, verified by check.cc:
//   T1. The root of the index leads to a Root, whose `current` names one of its two generation
//       words. That generation counts. The other word is 0, or leads to one that is being built or
//       was replaced; its blocks are freed when the build ends, or else when the table is opened.
//   T2. A generation that counts has, for each column, a block of codes with one code for each of
//       its `rows`, by slot. A slot is the number of a row in its generation. Codes in a column
//       with a dictionary are below `words`.
//   T3. The words of a dictionary ascend strictly, so codes have the order of values.
//   T4. The Elf of a generation has as many dimensions as there are columns; `dimension` of the
//       columns is a permutation. A row of the Elf has the row's slot for a TID, and the codes that
//       the columns have for it. Slots that the Elf has not are of rows that were erased.
//   T5. `numbers` has the TID of each slot. They ascend, and are below `tids`. Without that block a
//       slot is its row's TID, and `rows` equals `tids`.
//   T6. Keys of the tree `inserted` from `tids` on are the TIDs of inserted rows, one behind the
//       other. A value is a row (record.h), or empty: then the row was erased, and its TID is not
//       used again. Pairs with keys below `tids` mean nothing: a compact has folded these rows in,
//       and they are erased when no query reads the generation that it replaced.
//   T7. `inserted` leads to the head of a tree (index/fastfair/layout.h), or is 0 while the
//       generation is being made. Two generations lead to the same head if one is made, or was
//       made, by a compact of the other. The tree belongs to the generation that counts.
//   T8. Root, generations, and what the words of a generation lead to, are one allocated block
//   each,
//       large enough for what it holds.
//
// So a dictionary never changes, and it belongs to the codes beside it: one store of `current`
// replaces both.
//
// A generation of the first format ("ELGENRA1") has neither `rows` nor `numbers`: its slots are
// TIDs. The next build or compact replaces it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace perdix::detail::index::elf_table {

inline constexpr std::uint64_t kRootMagic = 0x31544f4f52544c45;             // "ELTROOT1"
inline constexpr std::uint64_t kGenerationMagic = 0x3241524e45474c45;       // "ELGENRA2"
inline constexpr std::uint64_t kFirstGenerationMagic = 0x3141524e45474c45;  // "ELGENRA1"

/// Where the index's root word leads. The columns' names and types follow behind it (schema.h).
/// All but `current` and `generations` is written once, before the root word.
struct Root {
  std::uint64_t magic;
  std::uint64_t columns;
  std::uint64_t schema_bytes;  ///< behind this
  std::uint64_t current;       ///< 0 or 1: the commit word of build and compact
  std::array<std::uint64_t, 2> generations;
};
static_assert(offsetof(Root, current) == 24 && sizeof(Root) == 48);

/// One column of a generation. A column of int32 or date has no dictionary: its codes are its
/// values, with the sign bit flipped.
struct ColumnLayout {
  std::uint64_t codes;      ///< block: a u32 for each slot; 0: there are none
  std::uint64_t words;      ///< values in the dictionary
  std::uint64_t keys;       ///< block: a u64 for each word: its key, or where its bytes end
  std::uint64_t bytes;      ///< block: the bytes of all words, one behind the other; strings only
  std::uint64_t dimension;  ///< of the Elf
};
static_assert(sizeof(ColumnLayout) == 40);

/// The rows of one build or compact, and those that were inserted since. The columns follow behind
/// it. Written before the generation counts, but for what the words `elf` and `inserted` lead to.
struct GenerationLayout {
  std::uint64_t magic;
  std::uint64_t tids;      ///< TIDs below it are of the columns, or of rows that were erased
  std::uint64_t elf;       ///< the root word of the Elf
  std::uint64_t inserted;  ///< the root word of the FAST&FAIR tree of inserted rows
  std::uint64_t rows;      ///< rows of the columns: slots are below it
  std::uint64_t numbers;   ///< block: a u32 for each slot, its TID; 0: they are equal
};
static_assert(offsetof(GenerationLayout, rows) == 32 && sizeof(GenerationLayout) == 48);

/// Bytes of the fields that a generation of the first format has.
inline constexpr std::size_t kFirstGenerationBytes = offsetof(GenerationLayout, rows);

}  // namespace perdix::detail::index::elf_table
