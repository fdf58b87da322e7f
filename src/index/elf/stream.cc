#include "index/elf/stream.h"

#include "epoch/guard.h"

namespace perdix::detail::index::elf {

Stream::Stream(const CurrentVersion& current, const DeadRows& dead_rows, const Box& box)
    : current_(current), dead_rows_(dead_rows), box_(box) {
  const epoch::Guard guard;
  const Version& version = current_.get();
  end_ = version.tids();
  for (Segment* s = version.segments(); s != nullptr; s = s->next.load(std::memory_order_acquire))
    end_ = s->end();
}

std::span<const Tid> Stream::next() {
  size_ = 0;
  const epoch::Guard guard;
  const Version& version = current_.get();
  while (!done_ && !full()) {
    choose_window(version);
    done_ = window_end_ != 0 ? take_listed(version) : take_inserted(version);
  }
  return {tids_.data(), size_};
}

/// Begins a window in the lists if they have TIDs from window_ on: these come before the rows of
/// the segments.
void Stream::choose_window(const Version& version) {
  if (window_end_ != 0 || window_ >= version.tids()) return;
  window_end_ = std::min(version.tids(), end_);
  after_.reset();
}

/// Adds rows of the window in the lists to the batch. Returns whether the stream has ended; false
/// also if the batch is full.
bool Stream::take_listed(const Version& version) {
  auto visit = [&](const Row& row) {
    if (full()) return false;
    if (row.tid < window_ || row.tid >= window_end_) return true;
    if (version.is_dead(row.tid, dead_rows_)) return true;
    add(row.tid);
    if (full()) end_batch(version, row);
    return true;
  };
  const std::optional<Row> begin = after_;
  const bool complete = with_source(version, [&](const Lists& lists, auto& source) {
    Walk walk(lists, source, box_, visit);
    if (begin) walk.begin_after(*begin);
    return walk.run();
  });
  if (!complete) return false;
  window_ = window_end_;
  window_end_ = 0;
  return window_ >= end_;
}

/// The batch is full with this row, and the next one begins behind it. Throws corrupt unless rows
/// ascend: otherwise the stream of a damaged table might not end.
void Stream::end_batch(const Version& version, const Row& row) {
  const bool ascends = !after_ || after_->values < row.values ||
                       (after_->values == row.values && after_->tid < row.tid);
  if (!ascends) version.lists().throw_wrong_row(row.tid);
  after_ = row;
}

/// Adds rows of the segments to the batch, one TID after the other. Returns whether the stream has
/// ended; false if the batch is full.
bool Stream::take_inserted(const Version& version) {
  for (Segment* s = version.segments(); s != nullptr; s = s->next.load(std::memory_order_acquire)) {
    for (; window_ < std::min(s->end(), end_); ++window_) {
      if (full()) return false;
      const std::uint64_t i = window_ - s->first();
      const bool wanted = box_.admits_all(s->row(static_cast<std::uint32_t>(i)), 0);
      if (wanted && !dead_rows_.is_dead(s->dead(), i)) add(static_cast<Tid>(window_));
    }
  }
  return true;
}

}  // namespace perdix::detail::index::elf
