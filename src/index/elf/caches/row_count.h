// Counts the rows below lists. The paper's probability of a list is the share of all rows that lie
// below it. Erased rows count like the others.
#pragma once

#include <cstdint>

#include "index/elf/lists.h"

namespace perdix::detail::index::elf {

/// `OnList` is bool(Position, unsigned dimension, std::uint32_t entries, std::uint64_t rows),
/// called for each list when its rows are known, so after the lists below it; false ends the count.
template <class OnList>
class RowCount {
 public:
  RowCount(const Lists& lists, const OnList& on_list) : lists_(lists), on_list_(on_list) {}

  /// Of what an entry of dimension `dimension` - 1 leads to. Throws corrupt. Nodes must be visited
  /// in preorder, as a traversal does, so that the count of a damaged table ends.
  std::uint64_t count(Ref ref, unsigned dimension) {
    const bool last = dimension == lists_.dimensions();
    switch (ref.kind()) {
      case Ref::Kind::mono:
      case Ref::Kind::tid: return 1;
      case Ref::Kind::monos:
        return lists_.tids(ref.value() + lists_.dimensions() - dimension).size();
      case Ref::Kind::tids: return lists_.tids(ref.value()).size();
      case Ref::Kind::list:
        if (!last) return count_list(ref.value(), dimension);
        break;
      default: break;
    }
    lists_.throw_no_node(ref.value());
  }

  bool ended() const { return ended_; }

 private:
  std::uint64_t count_list(Position position, unsigned dimension) {
    const List list = lists_.list(position);
    if (position < passed_) lists_.throw_no_node(position);
    passed_ = position + list.words();
    std::uint64_t rows = 0;
    for (std::uint32_t i = 0; i < list.count && !ended_; ++i)
      rows += count(list.child(i, dimension + 1 == lists_.dimensions()), dimension + 1);
    if (!ended_ && !on_list_(position, dimension, list.count, rows)) ended_ = true;
    return rows;
  }

  const Lists& lists_;
  const OnList& on_list_;
  Position passed_ = 0;
  bool ended_ = false;
};

}  // namespace perdix::detail::index::elf
