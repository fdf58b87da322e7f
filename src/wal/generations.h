// When generations of chains begin (marks.h), over the stripes of a log. Chains that survive a
// restart have the first ones, made when the log is opened. Thread-safe but for mark_the_past().
#pragma once

#include <cstdint>
#include <deque>

#include "util/spin_lock.h"
#include "wal/layout.h"
#include "wal/marks.h"
#include "wal/stripe.h"

namespace perdix::detail::wal {

class Generations {
 public:
  /// `stripes`: go by marks(), and are not used once this or they are gone. `min_bytes`: of
  /// records, that one has at least.
  Generations(const std::deque<Stripe>& stripes, std::uint64_t min_bytes)
      : stripes_(stripes), min_bytes_(min_bytes) {}

  const Marks& marks() const noexcept { return marks_; }

  Tails tails() const noexcept;

  /// Records that were ever appended, and places that were left out.
  std::uint64_t appended() const noexcept;

  /// The generation of the oldest open chain; kNoGeneration if none is open.
  Generation oldest() const noexcept;

  /// On opening: makes marks for the chains that survive, as if the marks had been made while the
  /// records were written. Each age has the same part of the records of each stripe. Then makes the
  /// mark for the chains that begin from now on.
  void mark_the_past();

  /// The youngest generation whose mark is not behind a position of a surviving record, before the
  /// log is resumed.
  Generation of_surviving(Position position) const noexcept;

  /// Begins a generation if enough bytes were appended since the last one began, and Marks has room
  /// for one more. `limit`: the bytes that the log may have. `resuming`: chains may not be adopted
  /// yet.
  void begin_if_due(std::uint64_t limit, bool resuming) noexcept;

  /// The positions before which no open chain has a record.
  Tails needed() noexcept;

 private:
  const std::deque<Stripe>& stripes_;
  const std::uint64_t min_bytes_;
  Marks marks_;
  util::SpinLock marking_;    // guards the begin of generations
  std::uint64_t marked_ = 0;  // bytes appended when the last one began; guarded by marking_
};

}  // namespace perdix::detail::wal
