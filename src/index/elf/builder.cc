#include "index/elf/builder.h"

#include <algorithm>
#include <numeric>

namespace perdix::detail::index::elf {
namespace {

/// Rows of a batch, which should fit the caches.
constexpr std::size_t kMaxBatchRows = std::size_t{1} << 17;

/// Whether a list of this many rows needs wide pointers: a narrow one might not reach over all the
/// positions that the nodes of its rows take.
bool needs_wide(std::uint64_t rows, unsigned dimensions, std::uint32_t slot_shift) {
  return max_span(rows, dimensions, slot_shift) > kNarrowReach;
}

}  // namespace

void Builder::add(std::uint32_t value, const ColumnRows& rows, std::span<std::uint32_t> order,
                  std::span<std::uint32_t> scratch) {
  add_ref(value, emit(rows, {order, scratch}, 1));
}

void Builder::add(std::uint32_t value, const Batch& batch) {
  add_ref(value, emit(batch, whole(batch), 1));
}

void Builder::add_ref(std::uint32_t value, Ref ref) {
  values_.push_back(value);
  refs_.push_back(ref);
}

Builder::Order Builder::whole(const Batch& batch) {
  const std::size_t n = batch.size();
  if (batch_order_.size() < 2 * n) batch_order_.resize(2 * n);
  const std::span all(batch_order_);
  std::iota(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n), 0U);
  return {all.first(n), all.subspan(n, n)};
}

/// Writes the nodes of some rows whose values agree in all dimensions before this one. Returns what
/// leads to them. The functions below do the same for one kind of node each.
template <class Rows>
Ref Builder::emit(const Rows& rows, const Order& order, unsigned dimension) {
  if (dimension == dimensions_) return emit_tids(rows, order.rows);
  if (all_equal(rows, order.rows, dimension)) return emit_mono(rows, order.rows, dimension);
  if constexpr (std::is_same_v<Rows, ColumnRows>) {
    if (order.size() <= kMaxBatchRows) return emit_batch(rows, order, dimension);
  }
  return emit_list(rows, order, dimension);
}

Ref Builder::emit_batch(const ColumnRows& rows, const Order& order, unsigned dimension) {
  batch_.begin(dimension, dimensions_);
  for (std::size_t i = 0; i < order.size(); ++i) batch_.add();
  // Column by column, so that each is read in one direction.
  for (unsigned d = dimension; d < dimensions_; ++d) {
    for (std::uint32_t i = 0; i < order.size(); ++i) batch_.set(i, d, rows.value(order.rows[i], d));
  }
  for (std::uint32_t i = 0; i < order.size(); ++i) batch_.set_tid(i, rows.tid(order.rows[i]));
  return emit_list(batch_, whole(batch_), dimension);
}

template <class Rows>
Ref Builder::emit_list(const Rows& rows, const Order& order, unsigned dimension) {
  const auto value = [&](std::uint32_t row) { return rows.value(row, dimension); };
  sorter_.sort(order.rows, order.scratch, value, steps_);
  steps_.end(order.size());
  std::uint32_t count = 1;
  for (std::size_t i = 1; i < order.size(); ++i)
    count += value(order.rows[i - 1]) != value(order.rows[i]) ? 1 : 0;
  const bool wide = needs_wide(order.size(), dimensions_, slot_shift_);
  const Position list = to_.reserve(list_words(count, wide));
  std::uint32_t* word = to_.node(list);
  *word++ = count | (wide ? kWideList : 0);
  *word++ = value(order.rows[0]);
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (value(order.rows[i - 1]) != value(order.rows[i])) *word++ = value(order.rows[i]);
  }
  std::size_t begin = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::size_t end = begin + 1;
    while (end < order.size() && value(order.rows[end]) == value(order.rows[begin])) ++end;
    const Ref child = emit(rows, order.part(begin, end), dimension + 1);
    set_pointer(list, count, wide, i, child, dimension + 1 == dimensions_);
    begin = end;
  }
  return {Ref::Kind::list, list};
}

template <class Rows>
Ref Builder::emit_mono(const Rows& rows, std::span<const std::uint32_t> order, unsigned dimension) {
  const unsigned values = dimensions_ - dimension;
  const bool several = order.size() > 1;
  const Position mono = to_.reserve(values + (several ? 1 : 0) + order.size());
  std::uint32_t* word = to_.node(mono);
  for (unsigned d = dimension; d < dimensions_; ++d) *word++ = rows.value(order[0], d);
  if (several) *word++ = static_cast<std::uint32_t>(order.size());
  for (const std::uint32_t row : order) *word++ = rows.tid(row);
  steps_.end(order.size() * values);
  return {several ? Ref::Kind::monos : Ref::Kind::mono, mono};
}

template <class Rows>
Ref Builder::emit_tids(const Rows& rows, std::span<const std::uint32_t> order) {
  if (order.size() == 1) return {Ref::Kind::tid, rows.tid(order[0])};
  const Position tids = to_.reserve(1 + order.size());
  std::uint32_t* word = to_.node(tids);
  *word++ = static_cast<std::uint32_t>(order.size());
  for (const std::uint32_t row : order) *word++ = rows.tid(row);
  return {Ref::Kind::tids, tids};
}

template <class Rows>
bool Builder::all_equal(const Rows& rows, std::span<const std::uint32_t> order,
                        unsigned dimension) {
  for (std::size_t i = 1; i < order.size(); ++i) {
    steps_.pass(1);
    for (unsigned d = dimension; d < dimensions_; ++d) {
      if (rows.value(order[0], d) != rows.value(order[i], d)) return false;
    }
  }
  return true;
}

void Builder::set_pointer(Position list, std::uint32_t count, bool wide, std::uint32_t i, Ref to,
                          bool last_dimension) {
  const Position pointers = list + 1 + count;
  if (!wide) return to_.set(pointers + i, narrow_pointer(to, list, last_dimension));
  to_.set(pointers + 2 * Position{i}, static_cast<std::uint32_t>(to.word()));
  to_.set(pointers + 2 * Position{i} + 1, static_cast<std::uint32_t>(to.word() >> 32));
}

}  // namespace perdix::detail::index::elf
