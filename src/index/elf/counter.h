// Counts the rows that lists have in a box, erased ones among them. It reads no row: below the last
// dimension that has bounds, entries of lists are counted, and MonoLists are not read.
#pragma once

#include <algorithm>
#include <cstdint>

#include "index/elf/box.h"
#include "index/elf/lists.h"

namespace perdix::detail::index::elf {

/// `Source` as for a Walk.
template <class Source>
class RowCounter {
 public:
  RowCounter(const Lists& lists, Source& source, const Box& box)
      : lists_(lists), source_(source), box_(box), bounded_(bounded_dimensions(box)) {}

  /// Throws corrupt.
  std::uint64_t run() {
    const FirstEntries& first = source_.first(lists_);
    std::uint64_t rows = 0;
    for (std::uint32_t i = first.next(box_, first.lower_bound(box_.lower[0])); i < first.count();
         i = first.next(box_, i + 1)) {
      const auto [value, ref] = first.entry(i);
      if (value > box_.upper[0]) break;
      if (ref.kind() != Ref::Kind::none) rows += count(ref, 1);
    }
    return rows;
  }

 private:
  /// Behind the last one that has bounds.
  static unsigned bounded_dimensions(const Box& box) {
    unsigned bounded = box.dimensions;
    while (bounded > 0 && box.has_all(bounded - 1)) --bounded;
    return bounded;
  }

  std::uint64_t count(Ref ref, unsigned dimension) {
    const bool last = dimension == box_.dimensions;
    switch (ref.kind()) {
      case Ref::Kind::list:
      case Ref::Kind::cached:
      case Ref::Kind::outlined:
        if (!last) return count_list(ref, dimension);
        break;
      case Ref::Kind::mono:
      case Ref::Kind::monos:
        if (!last) return count_mono(ref, dimension);
        break;
      case Ref::Kind::tid:
        if (last) return 1;
        break;
      case Ref::Kind::tids:
        if (last) return count_tids(ref.value());
        break;
      default: break;
    }
    lists_.throw_no_node(ref.value());
  }

  std::uint64_t count_list(Ref ref, unsigned dimension) {
    const List list = source_.open(ref, dimension);
    pass(list.position, list.words());
    const bool last = dimension + 1 == box_.dimensions;
    std::uint32_t begin = 0;
    std::uint32_t end = list.count;
    if (!box_.has_all(dimension)) {
      begin = lists_.lower_bound(list, dimension, box_.lower[dimension]);
      const std::uint32_t upper = box_.upper[dimension];
      if (upper != ~std::uint32_t{0}) end = lists_.lower_bound(list, dimension, upper + 1);
    }
    const bool bounded = dimension + 1 < bounded_;
    std::uint64_t rows = 0;
    const auto next = [&](std::uint32_t i) { return lists_.next(list, box_, dimension, i, end); };
    for (std::uint32_t i = next(begin); i < end; i = next(i + 1)) {
      const Ref child = list.child(i, last);
      if (child.kind() == Ref::Kind::mono && !last) {
        rows += !bounded || admits(child, dimension + 1) ? 1 : 0;
      } else {
        rows += count(child, dimension + 1);
      }
    }
    return rows;
  }

  std::uint64_t count_mono(Ref ref, unsigned dimension) {
    if (dimension < bounded_ && !admits(ref, dimension)) return 0;
    if (ref.kind() == Ref::Kind::mono) return 1;
    return count_tids(ref.value() + box_.dimensions - dimension);
  }

  /// Whether the values of a MonoList are within the bounds. There are very many of them.
  [[gnu::always_inline]] bool admits(Ref mono, unsigned dimension) const {
    const std::uint32_t* values = lists_.words(mono.value(), box_.dimensions - dimension);
    lists_.note_read(values, bounded_ - dimension);
    return box_.admits(values, dimension, bounded_);
  }

  std::uint64_t count_tids(Position position) {
    pass(position, 1);
    return lists_.tids(position).size();
  }

  /// As in a Walk, so that the count of a damaged table ends.
  void pass(Position position, std::uint64_t words) {
    if (position < passed_) [[unlikely]]
      lists_.throw_no_node(position);
    passed_ = position + words;
  }

  const Lists& lists_;
  Source& source_;
  const Box& box_;
  const unsigned bounded_;  // dimensions from here on have no bounds
  Position passed_ = 0;
};

}  // namespace perdix::detail::index::elf
