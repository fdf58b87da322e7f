// Rows of text as typed columns for ElfTable::build().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <perdix/elf_table.h>

#include "perdix/rows.h"

namespace perdix::tool {

/// Not thread-safe.
class ElfRows {
 public:
  explicit ElfRows(const std::vector<ElfColumn>& columns);

  /// The next row names the columns of the text: from now on values are taken by name. Throws
  /// perdix::Error invalid_argument if a column is missing, or there twice.
  void take_names(const Row& row);

  /// Throws perdix::Error invalid_argument for a row that has not as many fields as there are
  /// columns, or as there were names, and for values of the wrong form.
  void add(const Row& row);

  std::uint64_t size() const { return rows_; }

  /// Fields of a row.
  std::size_t width() const { return width_; }

  /// Valid until the next add().
  std::vector<ElfColumnData> data() const;

 private:
  using Values = std::variant<std::vector<std::int32_t>, std::vector<std::int64_t>,
                              std::vector<double>, std::vector<ElfDate>, std::vector<std::string>>;

  const std::vector<ElfColumn>& columns_;
  std::vector<std::size_t> fields_;  // of each column
  std::size_t width_;                // fields of a row
  std::vector<ElfValue> row_;        // that is being added
  std::vector<Values> values_;
  std::uint64_t rows_ = 0;
};

}  // namespace perdix::tool
