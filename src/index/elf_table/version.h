// An open generation: what queries read. A build or a compact replaces it as a whole; queries that
// began before keep theirs (Table::Pin).
//
// Immutable but for its Elf, of which rows are erased, and its tree of inserted rows. Thread-safe
// as those are.
#pragma once

#include <cstdint>
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

class Version {
 public:
  using Tid = Elf::Tid;

  /// Opens a generation of the index behind the handle; makes its Elf and its tree if they are not
  /// there. Throws corrupt.
  Version(const pool::IndexHandle& index, const Schema& schema, std::uint64_t& generation_word,
          const elf::Shape& shape);

  /// TIDs below it are of the columns, others of inserted rows.
  std::uint64_t tids() const { return tids_; }

  elf::Table& elf() { return elf_; }
  const elf::Table& elf() const { return elf_; }
  InsertedRows& inserted() { return inserted_; }
  const InsertedRows& inserted() const { return inserted_; }

  const Dictionary& dictionary(unsigned column) const { return columns_[column].dictionary; }
  unsigned dimension(unsigned column) const { return columns_[column].dimension; }

  /// The column of a dimension.
  unsigned column(unsigned dimension) const { return columns_of_dimensions_[dimension]; }

  /// The code that a row below tids() has in a column. Throws corrupt if there is no such row.
  std::uint32_t code(unsigned column, Tid tid) const;

  /// The codes of all rows below tids() in a column.
  std::span<const std::uint32_t> codes(unsigned column) const {
    return {columns_[column].codes, tids_};
  }

  /// The codes of all columns as the Elf has them.
  std::vector<std::uint32_t> point(Tid tid) const;

 private:
  struct Column {
    Dictionary dictionary;
    const std::uint32_t* codes;
    unsigned dimension;
  };

  void open_columns(const Schema& schema);

  pool::PoolCore& pool_;
  GenerationLayout& layout_;
  const std::uint64_t tids_;
  std::vector<Column> columns_;
  std::vector<unsigned> columns_of_dimensions_;
  InsertedRows inserted_;
  elf::Table elf_;
};

}  // namespace perdix::detail::index::elf_table
