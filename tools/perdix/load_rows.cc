#include "perdix/load_rows.h"

#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "terminal/format.h"

namespace perdix::tool {

LoadRows::LoadRows(RowReader& reader, bool header, const std::atomic<bool>& stop)
    : reader_(reader), stop_(stop) {
  Row row;
  if (!reader_.next(row) || header) return;
  dump_ = DumpHeader::parse(row.fields);
  if (dump_) {
    read_ahead();
  } else {
    first_ = std::move(row);
  }
}

bool LoadRows::next(Row& row) {
  if (first_) {
    row = *std::exchange(first_, std::nullopt);
    return true;
  }
  if (!dump_) return reader_.next(row);
  if (!more_) return false;
  std::swap(row, ahead_);
  ++rows_;
  read_ahead();
  return true;
}

void LoadRows::read_ahead() {
  more_ = reader_.next(ahead_);
  if (!more_) {
    if (stop_) return;
    // The last row that was read is not given out: it may be cut off, too.
    throw Error(Errc::invalid_argument,
                fmt::format("the dump was cut off after {} rows: its last line is missing; make a "
                            "new dump",
                            terminal::format_count(rows_ == 0 ? 0 : rows_ - 1)));
  }
  if (const std::optional<DumpEnd> end = DumpEnd::parse(ahead_.fields)) end_dump(*end);
}

void LoadRows::end_dump(const DumpEnd& end) {
  more_ = false;
  if (end.rows != rows_) {
    throw Error(Errc::invalid_argument,
                fmt::format("the dump has {} rows, but its last line says {}",
                            terminal::format_count(rows_), terminal::format_count(end.rows)));
  }
  if (reader_.next(ahead_)) {
    throw Error(Errc::invalid_argument,
                fmt::format("line {} comes after the last line of the dump", ahead_.line));
  }
}

}  // namespace perdix::tool
