// Rows of fields from TSV or CSV text.
//
// TSV: one row per line, fields separated by tabs, taken as they are (what a backslash means is up
// to the reader of the field). CSV: RFC 4180, so fields may be quoted and then hold commas,
// newlines and doubled quotes; a byte-order mark at the start is skipped. A carriage return at the
// end of a line belongs to the line end. Empty lines are no rows, unless rows have one field, which
// may be empty. A NUL byte is refused, because
// the file is then hardly text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/error.h>

#include "perdix/source.h"

namespace perdix::tool {

enum class RowFormat : std::uint8_t { tsv, csv };

struct Row {
  std::uint64_t line = 0;           ///< the line that it begins on; the first is 1
  std::vector<std::string> fields;  ///< at least one
};

/// Not thread-safe.
class RowReader {
 public:
  /// `name` is what messages call the source. The source must outlive the reader.
  RowReader(Source& source, std::string name, RowFormat format);

  /// Takes empty lines for rows of one empty field from now on, or does not.
  void take_empty_lines(bool take) { takes_empty_lines_ = take; }

  /// The next row, or false at the end. Throws perdix::Error invalid_argument with name and line.
  bool next(Row& row);

 private:
  bool refill();
  bool take_line(std::string& line);
  bool next_tsv(Row& row);
  bool next_csv(Row& row);
  [[noreturn]] void refuse(std::uint64_t line, std::string_view what) const;

  Source& source_;
  std::string name_;
  RowFormat format_;
  bool takes_empty_lines_ = false;
  std::string buffer_;
  std::size_t at_ = 0;
  std::uint64_t line_ = 0;  // of the last line taken
  std::string text_;
};

}  // namespace perdix::tool
