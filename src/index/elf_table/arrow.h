// The Arrow C data interface: arrays as columns of a build, and rows as arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/arrow_abi.h>
#include <perdix/elf_table.h>

#include "index/elf_table/schema.h"

namespace perdix::detail::index::elf_table {

/// The columns of a table for arrays of this schema. Throws unsupported.
Schema columns_of(const ArrowSchema& schema);

/// The columns of a table, in an array that outlives this object. Values lie where they are; of
/// strings there are views. Not thread-safe.
class ArrowColumns {
 public:
  /// Throws invalid_argument or unsupported.
  ArrowColumns(const Schema& columns, const ArrowSchema& schema, const ArrowArray& array);

  std::span<const ElfColumnData> data() const { return data_; }

 private:
  std::vector<ElfColumnData> data_;
  std::list<std::vector<std::string_view>> strings_;
};

/// Collects rows for an array. Not thread-safe.
class ArrowRows {
 public:
  ArrowRows(const Schema& columns, bool utf8);
  ~ArrowRows();
  ArrowRows(const ArrowRows&) = delete;
  ArrowRows& operator=(const ArrowRows&) = delete;

  void add(std::span<const ElfValue> row);

  /// Moves the collected rows to structures that their user releases. Throws bad_alloc.
  void move_to(ArrowSchema& schema, ArrowArray& array);

 private:
  struct Column;

  const bool utf8_;
  std::uint64_t rows_ = 0;
  std::vector<std::unique_ptr<Column>> data_;
};

}  // namespace perdix::detail::index::elf_table
