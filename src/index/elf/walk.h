// A traversal of a table's lists in the order of the points: shows the rows in a box.
//
//   auto visit = [&](const Row& row) { ...; return true; };
//   Walk walk(lists, source, box, visit);   // with_source() in version.h has lists and source
//   walk.begin_after(row);                  // goes on behind a row of an earlier traversal
//   walk.run();
//
// The earlier traversal may have read a table that was replaced since: the walk compares the values
// of the row, not its place.
//
// Each node must begin behind the nodes before it (layout.h, L3). So a traversal of a damaged table
// reads no word twice, and ends.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "index/elf/box.h"
#include "index/elf/find.h"
#include "index/elf/lists.h"

namespace perdix::detail::index::elf {

/// A row: its values, and its TID.
struct Row {
  std::array<std::uint32_t, kMaxDimensions> values{};
  Tid tid = 0;
};

/// `Source` opens lists: List open(Ref, unsigned dimension), and has the first one:
/// const FirstEntries& first(const Lists&). `Visit` is bool(const Row&); false ends the traversal.
/// The Walk keeps references to all that it is given.
template <class Source, class Visit>
class Walk {
 public:
  Walk(const Lists& lists, Source& source, const Box& box, Visit& visit)
      : lists_(lists), source_(source), box_(box), visit_(visit) {}

  /// run() will begin behind this row, in the order of values and then of TIDs. The row outlives
  /// the Walk.
  void begin_after(const Row& row) { after_ = &row; }

  /// Visits the rows. Once. Returns false if the visitor ended it. Throws corrupt.
  bool run() {
    const FirstEntries& first = source_.first(lists_);
    bool on_path = after_ != nullptr;
    const std::uint32_t from = on_path ? std::max(after_->values[0], box_.lower[0]) : box_.lower[0];
    on_path = on_path && from == after_->values[0];
    for (std::uint32_t i = first.next(box_, first.lower_bound(from)); i < first.count();
         i = first.next(box_, i + 1)) {
      const auto [value, ref] = first.entry(i);
      if (value > box_.upper[0]) break;
      if (ref.kind() == Ref::Kind::none) continue;
      row_.values[0] = value;
      if (!visit_child(ref, 1, on_path && value == from)) return false;
    }
    return true;
  }

 private:
  /// Visits what an entry of dimension `dimension` - 1 leads to. `on_path`: all values so far equal
  /// those of `after_`, so rows up to `after_` must be passed over. Returns false if the visitor
  /// ended the traversal; so do the functions below.
  bool visit_child(Ref ref, unsigned dimension, bool on_path) {
    switch (ref.kind()) {
      case Ref::Kind::list:
      case Ref::Kind::cached:
      case Ref::Kind::outlined:
        if (dimension < box_.dimensions) return visit_list(ref, dimension, on_path);
        break;
      case Ref::Kind::mono:
      case Ref::Kind::monos:
        if (dimension < box_.dimensions) return visit_mono(ref, dimension, on_path);
        break;
      case Ref::Kind::tid:
        if (dimension == box_.dimensions) return visit_tid(static_cast<Tid>(ref.value()), on_path);
        break;
      case Ref::Kind::tids:
        if (dimension == box_.dimensions) return visit_tids(ref.value(), on_path);
        break;
      default: break;
    }
    lists_.throw_no_node(ref.value());
  }

  bool visit_list(Ref ref, unsigned dimension, bool on_path) {
    const List list = source_.open(ref, dimension);
    pass(list.position, list.words());
    const bool last = dimension + 1 == box_.dimensions;
    std::uint32_t from = box_.lower[dimension];
    if (on_path) from = std::max(from, after_->values[dimension]);
    const auto next = [&](std::uint32_t i) {
      return lists_.next(list, box_, dimension, i, list.count);
    };
    for (std::uint32_t i = next(lists_.lower_bound(list, dimension, from)); i < list.count;
         i = next(i + 1)) {
      const std::uint32_t value = list.value(i);
      if (value > box_.upper[dimension]) break;
      row_.values[dimension] = value;
      const bool still_on_path = on_path && value == after_->values[dimension];
      if (!visit_child(list.child(i, last), dimension + 1, still_on_path)) return false;
    }
    return true;
  }

  bool visit_mono(Ref ref, unsigned dimension, bool on_path) {
    const unsigned count = box_.dimensions - dimension;
    const std::uint32_t* values = lists_.words(ref.value(), count + 1);
    lists_.note_read(values, count + 1);
    pass(ref.value(), ref.kind() == Ref::Kind::monos ? count : count + 1);
    if (!box_.admits_all(values, dimension)) return true;
    if (on_path) {
      const std::uint32_t* after = after_->values.data() + dimension;
      if (std::lexicographical_compare(values, values + count, after, after + count)) return true;
      on_path = std::equal(values, values + count, after);
    }
    std::copy_n(values, count, row_.values.begin() + dimension);
    if (ref.kind() == Ref::Kind::monos) return visit_tids(ref.value() + count, on_path);
    return visit_tid(values[count], on_path);
  }

  bool visit_tids(Position position, bool on_path) {
    const std::span<const Tid> tids = lists_.tids(position);
    pass(position, 1 + tids.size());
    for (const Tid tid : tids) {
      if (!visit_tid(tid, on_path)) return false;
    }
    return true;
  }

  bool visit_tid(Tid tid, bool on_path) {
    if (on_path && tid <= after_->tid) return true;
    row_.tid = tid;
    return visit_(static_cast<const Row&>(row_));
  }

  /// The walk reads the node at `position`. Throws corrupt if it lies before a node that was read.
  void pass(Position position, std::uint64_t words) {
    if (position < passed_) [[unlikely]]
      lists_.throw_no_node(position);
    passed_ = position + words;
  }

  const Lists& lists_;
  Source& source_;
  const Box& box_;
  Visit& visit_;
  const Row* after_ = nullptr;
  Position passed_ = 0;  // all nodes before it were visited, or passed over
  Row row_;
};

/// Opens lists where they lie in PM.
class PmSource {
 public:
  explicit PmSource(const Lists& lists) : lists_(lists) {}

  const FirstEntries& first(const Lists& lists) const { return lists.first(); }

  List open(Ref ref, unsigned) const {
    if (ref.kind() != Ref::Kind::list) lists_.throw_no_node(ref.value());
    return lists_.list(ref.value());
  }

  /// find_in() for the list that a Ref leads to.
  Ref find(Ref ref, unsigned dimension, std::uint32_t value) const {
    return find_in(lists_, open(ref, dimension), dimension, value);
  }

 private:
  const Lists& lists_;
};

}  // namespace perdix::detail::index::elf
