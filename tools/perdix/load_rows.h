// The rows that the command load stores: all rows of a source except a header that names the
// columns, and except the first and the last line of a dump.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "perdix/dump_header.h"
#include "perdix/rows.h"

namespace perdix::tool {

/// Not thread-safe.
class LoadRows {
 public:
  /// Reads the header, or the first line of a dump. The source may end early once `stop` is true.
  /// The reader and `stop` must outlive this object.
  LoadRows(RowReader& reader, bool header, const std::atomic<bool>& stop);

  /// The first line of the dump, if the source is one.
  const std::optional<DumpHeader>& dump() const noexcept { return dump_; }

  /// The next row, or false at the end. Throws perdix::Error invalid_argument if the row is
  /// malformed, or if the source is a dump that was cut off. A row of a dump is given out once the
  /// line after it has been read: the last row of a dump that was cut off may be cut off, too.
  bool next(Row& row);

 private:
  void read_ahead();
  void end_dump(const DumpEnd& end);

  RowReader& reader_;
  const std::atomic<bool>& stop_;
  std::optional<DumpHeader> dump_;
  Row ahead_;          // of a dump: the row after the one that was given out last
  bool more_ = false;  // of a dump: ahead_ is a row
  std::uint64_t rows_ = 0;
  std::optional<Row> first_;  // of other sources: read, and not given out yet
};

}  // namespace perdix::tool
