// A query whose rows are shown in batches. A batch is collected in an epoch::Guard, and shown
// without one. So a visitor may call the index and take any time.
//
//   Stream stream(current, dead_rows, box);
//   for (auto tids = stream.next(); !tids.empty(); tids = stream.next()) ...
//
// A stream remembers its progress, not a place in the table. It shows the rows of the lists in the
// order of the points, and rows inserted since in the order of the TIDs. Each row is in one of the
// two, and a compact moves rows from the second to the first. So the stream proceeds by windows of
// TIDs: first the TIDs that the lists had at its first batch; then inserted rows one by one, or,
// where a compact has moved them, the rows of the lists with TIDs from there on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "index/elf/box.h"
#include "index/elf/current_version.h"
#include "index/elf/dead_rows.h"
#include "index/elf/walk.h"

namespace perdix::detail::index::elf {

/// Belongs to one thread.
class Stream {
 public:
  /// All of them outlive the Stream. It shows no row that is inserted after this.
  Stream(const CurrentVersion& current, const DeadRows& dead_rows, const Box& box);

  /// Returns the TIDs of the next rows; none if all were shown. Valid until the next call. The
  /// caller is in no Guard. Throws corrupt.
  std::span<const Tid> next();

 private:
  static constexpr std::size_t kBatch = 1024;

  bool full() const { return size_ == kBatch; }
  void add(Tid tid) { tids_[size_++] = tid; }
  void choose_window(const Version& version);
  bool take_listed(const Version& version);
  void end_batch(const Version& version, const Row& row);
  bool take_inserted(const Version& version);

  const CurrentVersion& current_;
  const DeadRows& dead_rows_;
  const Box& box_;
  std::uint64_t end_;             // TIDs from here on were given after the stream began
  std::uint64_t window_ = 0;      // rows with TIDs below it were shown or passed over
  std::uint64_t window_end_ = 0;  // the end of the window in the lists; 0: no window is begun
  std::optional<Row> after_;      // the last row of the window that is in a full batch
  bool done_ = false;
  std::size_t size_ = 0;
  std::array<Tid, kBatch> tids_;
};

}  // namespace perdix::detail::index::elf
