#include "index/tips/reserve.h"

#include <unordered_set>

#include <perdix/error.h>

#include "alloc/session.h"
#include "index/tips/damage.h"
#include "pm/access.h"

namespace perdix::detail::index::tips {
namespace {

/// Spans that this many blocks of a class fill.
std::int64_t spans_of(std::int64_t blocks, unsigned size_class) {
  const std::int64_t in_a_span = alloc::kSizeClasses[size_class].blocks;
  return (blocks + in_a_span - 1) / in_a_span;
}

}  // namespace

Reserve::Reserve(pool::PoolCore& pool, Header& header) : pool_(pool), header_(header) {
  std::unordered_set<pm::Offset> seen;
  for (pm::Offset at = pm::load(header.reserve); at != pm::kNull;) {
    if (!seen.insert(at).second || !pool.allocator().validate_block(at, alloc::kSpanSize))
      throw_damaged_part(pool, "the reserve");
    at = pm::load(pool.at<ReserveBlock>(at)->next);
  }
  held_ = static_cast<std::int64_t>(seen.size());
}

/// Each step of a counter is one atomic operation, so the differences add up to what the counters
/// say together.
void Reserve::change(const Need& need, bool more) noexcept {
  std::int64_t spans = 0;
  if (need.spans() <= kMaxRun) {
    spans = static_cast<std::int64_t>(need.spans());
    if (!more) spans = -spans;
  }
  need.for_each([&](unsigned size_class, unsigned count) {
    const std::int64_t step = more ? std::int64_t{count} : -std::int64_t{count};
    const std::int64_t before = counts_[size_class].fetch_add(step, std::memory_order_relaxed);
    spans += spans_of(before + step, size_class) - spans_of(before, size_class);
  });
  if (spans != 0) needed_.fetch_add(spans);
}

Reserve::Answer Reserve::admit(const Need& need) {
  if (need.spans() > kMaxRun) return Answer::no_space;
  change(need, true);
  const Answer answer = is_enough() ? Answer::admitted : grow();
  if (answer != Answer::admitted) change(need, false);
  return answer;
}

Reserve::Answer Reserve::grow() {
  constexpr unsigned kPasses = 32;
  const std::lock_guard lock(mutex_);
  try {
    while (!is_enough()) {
      if (held_.load() >= kMaxBlocks) return Answer::wait;
      if (passes_ > 0) return --passes_, Answer::no_space;
      push();
    }
    return Answer::admitted;
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
    passes_ = kPasses;
    return Answer::no_space;
  }
}

/// The word of the header is the commit.
void Reserve::push() {
  alloc::Session session = pool_.allocator().session();
  const pm::Offset offset = session.reserve(alloc::kSpanSize);
  auto* const block = pool_.at<ReserveBlock>(offset);
  pm().store(block->next, pm::load(header_.reserve));
  pm().flush(block, sizeof *block);  // the commit fences
  session.commit(pm::set_word(header_.reserve, offset));
  held_.fetch_add(1);
}

/// Of a block that does not count any more. No thread reads it, so it is free immediately.
void Reserve::pop() {
  const pm::Offset first = pm::load(header_.reserve);
  alloc::Session session = pool_.allocator().session();
  session.free_unread(first);
  session.commit(pm::set_word(header_.reserve, pm::load(pool_.at<ReserveBlock>(first)->next)));
}

bool Reserve::spend() {
  const std::lock_guard lock(mutex_);
  if (held_.load() == 0) return false;
  held_.fetch_sub(1);
  pop();
  return true;
}

void Reserve::release_spare() {
  const std::lock_guard lock(mutex_);
  passes_ = 0;
  while (held_.load() > 0) {
    // Counted down first: a put that is admitted now sees that, or is seen here.
    held_.fetch_sub(1);
    if (!is_enough()) return void(held_.fetch_add(1));
    pop();
  }
}

void Reserve::walk(Owned& owned) const {
  const std::lock_guard lock(mutex_);
  walk_list(pool_, header_.reserve, "the reserve", owned, [&](pm::Offset at) {
    const auto any = [](const ReserveBlock&) { return true; };
    const auto& block = pool::checked<ReserveBlock>(pool_, at, "the reserve", any);
    return ListStep{pm::load(block.next), {at, alloc::kSpanSize, "a block of the reserve"}};
  });
}

}  // namespace perdix::detail::index::tips
