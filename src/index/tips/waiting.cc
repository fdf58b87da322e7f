#include "index/tips/waiting.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <new>
#include <utility>

namespace perdix::detail::index::tips {

Waiting::Waiting(OperationLogs& logs, epoch::Reclaimer& reclaimer, Kind keys, bool ordered)
    : logs_(logs), reclaimer_(reclaimer), keys_(keys), ordered_(ordered) {
  auto first = std::make_unique<State>();
  logs_.ends(first->begins);
  state_.store(first.release(), std::memory_order_relaxed);
}

Waiting::~Waiting() { delete state_.load(std::memory_order_relaxed); }

/// Views that have the State before keep it and what it leads to.
void Waiting::replace_state(std::unique_ptr<State> next) noexcept {
  reclaimer_.retire(state_.exchange(next.release(), std::memory_order_acq_rel));
}

void Waiting::adopt(std::vector<RankedEntry>& slots) {
  auto next = std::make_unique<State>(state());
  next->cut = std::make_shared<Run>();
  next->cut->slots.swap(slots);
  if (ordered_) sort_by_key(next->cut->slots, keys_);
  replace_state(std::move(next));
}

/// Takes what is queued at one moment into a run. Returns the number of the newest record.
std::uint64_t Waiting::take_queued(State& next, Run& run) const {
  const std::uint64_t number = logs_.ends(next.begins);
  for (std::size_t i = 0; i < kLogs; ++i) {
    Queue::for_each(state().begins[i], next.begins[i],
                    [&](const RankedEntry* slots, std::size_t size) {
                      run.slots.insert(run.slots.end(), slots, slots + size);
                    });
  }
  if (ordered_) sort_by_key(run.slots, keys_);
  return number;
}

auto Waiting::merged(std::span<const RankedEntry> earlier, std::span<const RankedEntry> later) const
    -> RunPointer {
  auto run = std::make_shared<Run>();
  run->slots.reserve(earlier.size() + later.size());
  const auto to = std::back_inserter(run->slots);
  if (ordered_) {  // of slots with equal keys, those of `earlier` come first
    std::merge(
        earlier.begin(), earlier.end(), later.begin(), later.end(), to,
        [this](const RankedEntry& a, const RankedEntry& b) { return compare(a, b, keys_) < 0; });
  } else {
    std::copy(later.begin(), later.end(), std::copy(earlier.begin(), earlier.end(), to));
  }
  return run;
}

/// Takes the last run out of a State.
auto Waiting::merged_last(State& next, const Run& run) const -> RunPointer {
  const RunPointer last = std::move(next.runs[--next.run_count]);
  return merged(last->slots, run.slots);
}

std::uint64_t Waiting::cut() {
  auto next = std::make_unique<State>(state());
  auto run = std::make_shared<Run>();
  const std::uint64_t number = take_queued(*next, *run);
  while (next->run_count > 0) run = merged_last(*next, *run);
  const RunPointer before = next->cut;
  if (!before->rest().empty()) run = merged(before->rest(), run->slots);
  if (left_ == nullptr) left_ = std::make_unique<State>();
  left_->cut->slots.reserve(run->slots.size());
  next->cut = std::move(run);
  replace_state(std::move(next));
  for (const RankedEntry& slot : before->rest()) slot.entry->clear(Entry::kDeferred);
  return number;
}

void Waiting::collect() noexcept try {
  constexpr std::size_t kMany = 512;
  std::size_t queued = 0;
  for (const Queue::Position& begin : state().begins)
    Queue::for_each(begin, {}, [&](const RankedEntry*, std::size_t size) { queued += size; });
  if (!ordered_ || queued < kMany) return;
  auto next = std::make_unique<State>(state());
  auto run = std::make_shared<Run>();
  take_queued(*next, *run);
  while (next->run_count > 0 &&
         next->runs[next->run_count - 1]->slots.size() <= 2 * run->slots.size())
    run = merged_last(*next, *run);
  assert(next->run_count < kMaxRuns);
  next->runs[next->run_count++] = std::move(run);
  replace_state(std::move(next));
} catch (const std::bad_alloc&) {
}

void Waiting::leave_deferred() noexcept {
  const RunPointer rest = std::move(left_->cut);
  assert(rest != nullptr);
  for (const RankedEntry& slot : state().cut->rest())
    if (slot.entry->has(Entry::kDeferred)) rest->slots.push_back(slot);  // cut() has made room
  left_->cut = rest;
  left_->runs = state().runs;
  left_->run_count = state().run_count;
  left_->begins = state().begins;
  replace_state(std::move(left_));
}

Waiting::Cursor::Cursor(const View& view, const Range& range)
    : keys_(view.keys_), down_(range.down) {
  add_part(view.cut_, range);
  for (const RunPointer& run : view.state_.later_runs()) add_part(run->slots, range);
  for (const Queue::Position& begin : view.state_.begins) add_queued(begin, range);
  const auto later = [this](const RankedEntry& a, const RankedEntry& b) {
    return comes_later(a, b);
  };
  std::make_heap(queued_.begin(), queued_.end(), later);
  choose();
}

/// The part of a run from `from` on.
void Waiting::Cursor::add_part(std::span<const RankedEntry> slots, const Range& range) {
  const RankedKey from(range.from, keys_);
  const bool up_to = range.down != range.strictly;  // slots with this key come first, too
  const auto at = std::partition_point(slots.begin(), slots.end(), [&](const RankedEntry& slot) {
    const int order = compare(slot, from, keys_);
    return order < 0 || (order == 0 && up_to);
  });
  const auto before = static_cast<std::size_t>(at - slots.begin());
  Part part =
      down_ ? Part{slots.data(), before} : Part{slots.data() + before, slots.size() - before};
  if (part.size == 0) return;
  find_newest(part);
  parts_[part_count_++] = part;
}

/// Going up, the newest slot of a key is the last one; going down, it comes first anyway.
void Waiting::Cursor::find_newest(Part& part) const {
  if (down_) return;
  while (part.size > 1 && compare(part.first[0], part.first[1], keys_) == 0)
    ++part.first, --part.size;
}

void Waiting::Cursor::add_queued(const Queue::Position& begin, const Range& range) {
  const RankedKey from(range.from, keys_);
  const RankedKey last(range.last.value_or(range.from), keys_);
  const std::uint64_t least = !down_ ? from.rank : range.last ? last.rank : 0;
  const std::uint64_t most = down_ ? from.rank : range.last ? last.rank : ~std::uint64_t{0};
  const auto is_in_range = [&](const RankedEntry& slot) {
    const int after = compare(slot, from, keys_), beyond = compare(slot, last, keys_);
    if (after == 0) return !range.strictly;
    return (after > 0) != down_ && (!range.last || beyond == 0 || (beyond > 0) == down_);
  };
  Queue::for_each(begin, {}, [&](const RankedEntry* slots, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      if (slots[i].rank - least <= most - least && is_in_range(slots[i]))
        queued_.push_back(slots[i]);
  });
}

/// Whether `a` has to be shown after `b`. Of the queues' entries of one key the newest comes first.
bool Waiting::Cursor::comes_later(const RankedEntry& a, const RankedEntry& b) const {
  const int order = compare(a, b, keys_);
  if (order == 0) return a.entry->number() < b.entry->number();
  return (order > 0) != down_;
}

/// Of the newest write of the next key.
void Waiting::Cursor::choose() {
  top_ = {};
  const auto consider = [this](const RankedEntry& slot) {
    const int order = top_.entry == nullptr ? 0 : compare(slot, top_, keys_);
    if (order == 0 || (order < 0) != down_) top_ = slot;  // later parts have newer writes
  };
  for (std::size_t i = 0; i < part_count_; ++i)
    if (parts_[i].size > 0) consider(next_of(parts_[i]));
  if (!queued_.empty()) consider(queued_.front());
}

void Waiting::Cursor::skip_top(Part& part) const {
  while (part.size > 0 && compare(next_of(part), top_, keys_) == 0) {
    if (!down_) ++part.first;
    --part.size;
  }
  if (part.size > 0) find_newest(part);
}

void Waiting::Cursor::next() {
  for (std::size_t i = 0; i < part_count_; ++i) skip_top(parts_[i]);
  const auto later = [this](const RankedEntry& a, const RankedEntry& b) {
    return comes_later(a, b);
  };
  while (!queued_.empty() && compare(queued_.front(), top_, keys_) == 0) {
    std::pop_heap(queued_.begin(), queued_.end(), later);
    queued_.pop_back();
  }
  choose();
}

}  // namespace perdix::detail::index::tips
