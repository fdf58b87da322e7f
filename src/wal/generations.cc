#include "wal/generations.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <mutex>

namespace perdix::detail::wal {
namespace {

/// The number of ages into which the surviving chains are divided, by where their records lie.
constexpr Generation kAges = 16;
/// The generation of the first age. The last age ends where the log ended when it was opened. The
/// generation after it is that of new chains.
constexpr Generation kFirstAge = 1;

/// Generations that begin while the limit's bytes are appended. A chain keeps all records since its
/// generation began, so at most this part of the limit is kept in vain.
constexpr std::uint64_t kGenerationsPerLimit = 64;

}  // namespace

Tails Generations::tails() const noexcept {
  Tails tails;
  for (unsigned i = 0; i < kStripes; ++i) tails[i] = stripes_[i].tail();
  return tails;
}

std::uint64_t Generations::appended() const noexcept {
  std::uint64_t records = 0;
  for (unsigned i = 0; i < kStripes; ++i)
    records += (stripes_[i].tail() - first_position(i)) / sizeof(Record);
  return records;
}

Generation Generations::oldest() const noexcept {
  Generation oldest = kNoGeneration;
  for (const Stripe& stripe : stripes_) oldest = std::min(oldest, stripe.oldest_generation());
  return oldest;
}

void Generations::mark_the_past() {
  const Tails tails = this->tails();
  for (Generation age = 0; age < kAges; ++age) {
    Tails mark;
    for (unsigned i = 0; i < kStripes; ++i) {
      const Position start = stripes_[i].segments().start();
      const std::uint64_t records = (tails[i] - start) / sizeof(Record);
      mark[i] = start + (records * age + kAges - 1) / kAges * sizeof(Record);
    }
    marks_.begin(mark);
  }
  marks_.begin(tails);
  assert(marks_.current() == kFirstAge + kAges);
  marked_ = appended() * sizeof(Record);
}

Generation Generations::of_surviving(Position position) const noexcept {
  const unsigned stripe = stripe_of_position(position);
  Generation generation = kFirstAge;
  while (generation < kFirstAge + kAges && marks_.at(generation + 1, stripe) <= position)
    ++generation;
  return generation;
}

void Generations::begin_if_due(std::uint64_t limit, bool resuming) noexcept {
  const std::unique_lock lock(marking_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  const std::uint64_t bytes = appended() * sizeof(Record);
  if (bytes - marked_ < std::max(min_bytes_, limit / kGenerationsPerLimit)) return;
  // Chains that were not adopted yet have the first ages.
  if (!marks_.has_room(resuming ? kFirstAge : oldest())) return;
  marks_.begin(tails());
  marked_ = bytes;
}

Tails Generations::needed() noexcept {
  Tails bounds;
  bounds.fill(std::numeric_limits<Position>::max());
  // Locked so that the oldest generation keeps its marks while they are read. A chain that begins
  // after this begins behind all tails, and so behind those of the checkpoint.
  const std::lock_guard guard(marking_);
  const Generation oldest = this->oldest();
  for (unsigned i = 0; oldest != kNoGeneration && i < kStripes; ++i)
    bounds[i] = marks_.at(oldest, i);
  return bounds;
}

}  // namespace perdix::detail::wal
