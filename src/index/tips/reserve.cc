#include "index/tips/reserve.h"

#include <algorithm>

#include <perdix/error.h>

#include "pm/access.h"
#include "util/stripe.h"

namespace perdix::detail::index::tips {
namespace {

constexpr std::uint64_t kMaxRun = 16;  // spans in runs that one put may need

/// Spans in runs that are kept for a put.
std::int64_t runs_of(const Need& need) {
  return need.spans() <= kMaxRun ? static_cast<std::int64_t>(need.spans()) : 0;
}

/// Spans that this many blocks of a class fill.
std::int64_t spans_of(std::int64_t blocks, unsigned size_class) {
  const std::int64_t in_a_span = alloc::kSizeClasses[size_class].blocks;
  return (blocks + in_a_span - 1) / in_a_span;
}

}  // namespace

/// The file may hold any number: the allocator has not kept more than the pool has.
Reserve::Reserve(pool::PoolCore& pool, std::uint64_t& noted)
    : pool_(pool),
      noted_(noted),
      claim_(pool.allocator(), std::min(pm::load(noted), pool.size() / alloc::kSpanSize)) {}

/// The claim may have less than is noted, since it hands out spans.
Reserve::~Reserve() {
  if (pool_.health().writable()) lower(0);
}

/// Returns by how many spans more the blocks of a class fill. Each step of a counter is one atomic
/// operation, so the differences add up to what the counters say together.
std::int64_t Reserve::change(unsigned size_class, std::int64_t blocks) noexcept {
  const std::int64_t before = counts_[size_class].fetch_add(blocks, std::memory_order_relaxed);
  return spans_of(before + blocks, size_class) - spans_of(before, size_class);
}

/// Counts puts, or uncounts them if they are fewer than 0.
void Reserve::change(const Need& need, std::int64_t puts) noexcept {
  std::int64_t spans = runs_of(need) * puts;
  need.for_each(
      [&](unsigned size_class, unsigned count) { spans += change(size_class, count * puts); });
  if (spans != 0) needed_.fetch_add(spans);
}

void Reserve::Settling::add(const Need& need) noexcept {
  runs_ += runs_of(need);
  need.for_each([&](unsigned size_class, unsigned count) { counts_[size_class] += count; });
}

Reserve::Settling::~Settling() {
  std::int64_t spans = -runs_;
  for (unsigned size_class = 0; size_class < counts_.size(); ++size_class)
    if (counts_[size_class] != 0) spans += reserve_.change(size_class, -counts_[size_class]);
  if (spans != 0) reserve_.needed_.fetch_add(spans);
}

/// Spans of waiting puts that the claim does not have.
std::uint64_t Reserve::missing() const {
  // Before the claim: once this is 0 again, the claim is seen without what was given up.
  const auto given_up = static_cast<std::int64_t>(giving_up_.load());
  const std::int64_t missing =
      needed_.load() + given_up - static_cast<std::int64_t>(claim_.spans());
  return missing > 0 ? static_cast<std::uint64_t>(missing) : 0;
}

/// Spans of the claim that waiting puts do not need.
std::uint64_t Reserve::spare() const {
  const std::int64_t spare = static_cast<std::int64_t>(claim_.spans()) - needed_.load();
  return spare > 0 ? static_cast<std::uint64_t>(spare) : 0;
}

bool Reserve::admit(const Need& need) {
  if (need.spans() > kMaxRun) return false;
  change(need, 1);
  if (missing() == 0 || grow()) return true;
  change(need, -1);
  return false;
}

/// Of the puts that were admitted before; else admits some, if the claim has them.
bool Reserve::admit_alike(const Need& need) {
  constexpr std::int64_t kAtOnce = 32;
  std::atomic<std::int64_t>& puts = admitted_[util::current_stripe() % admitted_.size()].puts;
  for (std::int64_t left = puts.load(std::memory_order_relaxed); left > 0;)
    if (puts.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) return true;
  change(need, kAtOnce);
  if (missing() == 0) {
    puts.fetch_add(kAtOnce - 1, std::memory_order_relaxed);
    return true;
  }
  change(need, -kAtOnce);
  return admit(need);
}

/// Claims what is missing, and more, since each step is noted durably.
bool Reserve::grow() {
  constexpr unsigned kPasses = 32;
  constexpr std::uint64_t kStep = 16;
  const std::lock_guard lock(mutex_);
  while (const std::uint64_t spans = missing()) {
    if (passes_ > 0) return --passes_, false;
    if ((spans < kStep && raise(kStep)) || raise(spans)) continue;
    passes_ = kPasses;
    return false;
  }
  return true;
}

/// Returns false if the pool has no space.
bool Reserve::raise(std::uint64_t spans) {
  try {
    claim_.raise(spans);
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
    return false;
  }
  pool_.pm().publish(noted_, claim_.spans());  // before a record relies on it: invariant 2
  return true;
}

void Reserve::lower(std::uint64_t spans) {
  claim_.lower(spans);
  // After that: a crash in between leaves more than is needed.
  if (pm::load(noted_) != claim_.spans()) pool_.pm().publish(noted_, claim_.spans());
}

void Reserve::release_spare(const Need& alike) {
  const std::lock_guard lock(mutex_);
  passes_ = 0;
  for (Admitted& admitted : admitted_)
    if (const std::int64_t puts = admitted.puts.exchange(0)) change(alike, -puts);
  if (needed_.load() == 0) claim_.surrender();
  const std::uint64_t most = spare();
  giving_up_ = most;
  // Once more: a put that is admitted now sees what is given up, or is seen here.
  lower(std::min(most, spare()));
  giving_up_ = 0;
}

void Reserve::release_all() {
  const std::lock_guard lock(mutex_);
  claim_.surrender();
  lower(claim_.spans());
}

}  // namespace perdix::detail::index::tips
