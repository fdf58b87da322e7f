// An open generation: what queries read. A build or a compact replaces it as a whole; queries that
// began before keep theirs (Table::Pin).
//
// Immutable but for its Elf, of which rows are erased, and its tree of inserted rows. Thread-safe
// as those are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "index/elf/elf.h"
#include "index/elf_table/dictionary.h"
#include "index/elf_table/layout.h"
#include "index/elf_table/schema.h"
#include "index/fastfair/fastfair.h"
#include "pool/index_handle.h"

namespace perdix::detail::index::elf_table {

/// TID to record (record.h); an empty one of a row that was erased.
using InsertedRows = fastfair::Tree<std::uint64_t, std::string>;

/// The number of a row in its generation: its place in the columns, and its TID in the Elf.
using Slot = elf::Tid;

class Version {
 public:
  using Tid = Elf::Tid;

  /// Opens a generation of the index behind the handle; makes its Elf if that is not there, and its
  /// tree. A compact gives its generation the tree of the one that it replaces in place of that,
  /// which the generation leads to once take_over() was called. Throws corrupt.
  Version(const pool::IndexHandle& index, const Schema& schema, std::uint64_t& generation_word,
          const elf::Shape& shape, std::shared_ptr<InsertedRows> inserted = nullptr);

  /// TIDs below it are of the columns, or of rows that were erased; others are of inserted rows.
  std::uint64_t tids() const { return tids_; }

  /// Slots are below it.
  std::uint64_t rows() const { return rows_; }

  /// The TID of a slot. Throws corrupt if there is no such slot.
  Tid tid_of(Slot slot) const {
    require_slot(slot);
    return numbers_ == nullptr ? slot : pm::load(numbers_[slot]);
  }

  /// The slot of a TID; none if it is of no row of the columns.
  std::optional<Slot> slot_of(Tid tid) const;

  elf::Table& elf() { return elf_; }
  const elf::Table& elf() const { return elf_; }
  InsertedRows& inserted() { return *inserted_; }
  const InsertedRows& inserted() const { return *inserted_; }
  const std::shared_ptr<InsertedRows>& shared_inserted() const { return inserted_; }

  /// Leads to the tree of another generation. Durable with the next fence.
  void take_over(const Version& other);

  /// Erases the pairs of the tree that mean nothing (T6).
  void erase_folded();

  const Dictionary& dictionary(unsigned column) const { return columns_[column].dictionary; }
  unsigned dimension(unsigned column) const { return columns_[column].dimension; }

  /// The column of a dimension.
  unsigned column(unsigned dimension) const { return columns_of_dimensions_[dimension]; }

  /// The code that a row has in a column. Throws corrupt if there is no such row.
  std::uint32_t code(unsigned column, Slot slot) const;

  /// The codes of all rows in a column.
  std::span<const std::uint32_t> codes(unsigned column) const {
    return {columns_[column].codes, rows_};
  }

  /// The codes of all columns as the Elf has them.
  std::vector<std::uint32_t> point(Slot slot) const;

 private:
  struct Column {
    Dictionary dictionary;
    const std::uint32_t* codes;
    unsigned dimension;
  };

  void open_numbers();
  void open_columns(const Schema& schema);
  void require_slot(Slot slot) const {
    if (slot >= rows_) [[unlikely]]
      throw_no_row(slot);
  }
  [[noreturn]] void throw_no_row(Slot slot) const;

  pool::PoolCore& pool_;
  GenerationLayout& layout_;
  const std::uint64_t tids_;
  const std::uint64_t rows_;
  const std::uint32_t* numbers_ = nullptr;  // null: slots are TIDs
  std::vector<Column> columns_;
  std::vector<unsigned> columns_of_dimensions_;
  const std::shared_ptr<InsertedRows> inserted_;
  elf::Table elf_;
};

}  // namespace perdix::detail::index::elf_table
