// Finds the rows of one point: follows one path, through at most one list of each dimension.
//
//   Find(lists, source, point, visit).run();   // with_source() in version.h has lists and source
#pragma once

#include <algorithm>
#include <cstdint>

#include "index/elf/lists.h"

namespace perdix::detail::index::elf {

/// Returns what the entry of a value in a list leads to, or a Ref of kind none if the list does not
/// have the value.
inline Ref find_in(const Lists& lists, const List& list, unsigned dimension, std::uint32_t value) {
  const std::uint32_t i = lists.lower_bound(list, dimension, value);
  if (i == list.count || list.value(i) != value) return {};
  return list.child(i, dimension + 1 == lists.dimensions());
}

/// `Source` has the first list, as for a Walk, and searches others: Ref find(Ref, unsigned
/// dimension, std::uint32_t value). `Visit` is bool(Tid); false ends the search.
template <class Source, class Visit>
class Find {
 public:
  /// `point` has a value for each dimension of the lists. All arguments outlive the Find.
  Find(const Lists& lists, Source& source, const std::uint32_t* point, const Visit& visit)
      : lists_(lists), source_(source), point_(point), visit_(visit) {}

  /// Calls visit(tid) for the rows of the point, in ascending order of TIDs. Throws corrupt.
  void run() {
    const FirstEntries& first = source_.first(lists_);
    const std::uint32_t i = first.lower_bound(point_[0]);
    if (i >= first.count()) return;
    const auto [value, entry] = first.entry(i);
    Ref ref = value == point_[0] ? entry : Ref();
    unsigned dimension = 1;
    for (; is_list(ref) && dimension < lists_.dimensions(); ++dimension)
      ref = source_.find(ref, dimension, point_[dimension]);
    if (ref.kind() != Ref::Kind::none) visit_end(ref, dimension);
  }

 private:
  static bool is_list(Ref ref) {
    const Ref::Kind kind = ref.kind();
    return kind == Ref::Kind::list || kind == Ref::Kind::cached || kind == Ref::Kind::outlined;
  }

  /// Visits what the path ends in: `ref` is no list, or `dimension` is the number of dimensions.
  void visit_end(Ref ref, unsigned dimension) {
    const bool last = dimension == lists_.dimensions();
    switch (ref.kind()) {
      case Ref::Kind::mono:
      case Ref::Kind::monos:
        if (!last) return visit_mono(ref, dimension);
        break;
      case Ref::Kind::tid:
        if (last) return static_cast<void>(visit_(static_cast<Tid>(ref.value())));
        break;
      case Ref::Kind::tids:
        if (last) return visit_tids(ref.value());
        break;
      default: break;
    }
    lists_.throw_no_node(ref.value());
  }

  void visit_mono(Ref ref, unsigned dimension) {
    const unsigned count = lists_.dimensions() - dimension;
    const std::uint32_t* values = lists_.words(ref.value(), count + 1);
    lists_.note_read(values, count + 1);
    if (!std::equal(values, values + count, point_ + dimension)) return;
    if (ref.kind() == Ref::Kind::monos) return visit_tids(ref.value() + count);
    visit_(values[count]);
  }

  void visit_tids(Position position) {
    for (const Tid tid : lists_.tids(position)) {
      if (!visit_(tid)) return;
    }
  }

  const Lists& lists_;
  Source& source_;
  const std::uint32_t* const point_;
  const Visit& visit_;
};

}  // namespace perdix::detail::index::elf
