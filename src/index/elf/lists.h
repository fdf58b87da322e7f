// The lists of one table, as they lie in PM: nodes by their positions. The file is not trusted, so
// every node is checked to lie in a block before it is read. Its content may still be anything.
//
// Immutable, and so thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "index/elf/box.h"
#include "index/elf/greatest_values.h"
#include "index/elf/layout.h"
#include "index/elf/node.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::elf {

/// The first entry of a list from entry `i` on whose value is in the set of a box for a dimension,
/// or is above its bounds; `end` if there is none before that one. lower_bound(value) is the first
/// entry that is not below it; in a damaged list, whose values do not ascend, any.
template <class Value, class LowerBound>
std::uint32_t next_wanted(const Box& box, unsigned dimension, std::uint32_t i, std::uint32_t end,
                          const Value& value, const LowerBound& lower_bound) {
  std::uint32_t wanted = 0;
  for (std::uint32_t passed = 0; i < end; ++passed) {
    const std::uint32_t here = value(i);
    if (here >= wanted) {
      if (here > box.upper[dimension]) break;
      wanted = box.next(dimension, here);
      if (wanted == here) break;
      passed = 0;
    }
    // Mostly it is near, in the same line.
    i = passed < kWordsOfLine ? i + 1 : std::max(lower_bound(wanted), i + 1);
  }
  return std::min(i, end);
}

/// The list of the first dimension. Where its values are dense, an entry is found by its value
/// without a search.
class FirstEntries {
 public:
  /// An entry. In a dense list there is one for each value of the range; its Ref is of kind none if
  /// the value does not occur.
  struct Entry {
    std::uint32_t value;
    Ref ref;
  };

  FirstEntries() = default;

  /// The first list in a block of PM (TableLayout::first_list), which is not 0. Throws corrupt.
  FirstEntries(const pool::PoolCore& pool, pm::Offset block);

  std::uint32_t count() const { return count_; }
  Entry entry(std::uint32_t i) const;

  /// The index of the first entry whose value is not below `bound`; count() if there is none.
  std::uint32_t lower_bound(std::uint32_t bound) const;

  /// next_wanted() of the first dimension.
  std::uint32_t next(const Box& box, std::uint32_t i) const {
    if (!box.has_set(0)) return i;
    return next_wanted(
        box, 0, i, count_, [&](std::uint32_t at) { return entry(at).value; },
        [&](std::uint32_t bound) { return lower_bound(bound); });
  }

  /// A copy in DRAM with other Refs. copy_bytes() says how many bytes it takes. copy() makes it at
  /// `to`, which must outlive it; replace(ref) returns the Ref that the copy has in place of `ref`.
  std::uint64_t copy_bytes() const;
  template <class Replace>
  FirstEntries copy(std::uint64_t* to, const Replace& replace) const {
    FirstEntries copy = *this;
    copy.in_pm_ = false;
    copy.refs_ = to;
    for (std::uint32_t i = 0; i < count_; ++i) to[i] = replace(entry(i).ref).word();
    if (values_ != nullptr) {
      std::memcpy(to + count_, values_, count_ * sizeof *values_);
      copy.values_ = reinterpret_cast<const std::uint32_t*>(to + count_);
    }
    return copy;
  }

 private:
  std::uint32_t count_ = 0;
  std::uint32_t min_ = 0;
  std::uint32_t greatest_ = 0;  // the last value; 0 if dense
  const std::uint64_t* refs_ = nullptr;
  const std::uint32_t* values_ = nullptr;  // null: dense
  bool in_pm_ = true;
};

class Lists {
 public:
  /// The words from the begin of a slot to the end of the block that covers it (L2). `begin` is
  /// null if no block does.
  struct Slot {
    const std::uint32_t* begin = nullptr;
    std::uint64_t words = 0;
  };

  /// Reads where the table's blocks lie, not the nodes in them. Throws corrupt.
  Lists(pool::PoolCore& pool, const TableLayout& table, const Root& root);

  unsigned dimensions() const { return dimensions_; }
  const FirstEntries& first() const { return first_; }
  const std::vector<Slot>& slots() const { return slots_; }

  /// Returns `count` words of the node at `position`. Throws corrupt if they don't lie in one
  /// block.
  const std::uint32_t* words(Position position, std::uint64_t count) const {
    const std::uint64_t slot = position >> shift_;
    const std::uint64_t from = position & ((std::uint64_t{1} << shift_) - 1);
    if (slot >= slots_.size() || from > slots_[slot].words || count > slots_[slot].words - from)
        [[unlikely]]
      throw_no_node(position);
    return slots_[slot].begin + from;
  }

  /// The list at a position. Throws corrupt if it does not lie in one block.
  List list(Position position) const {
    const std::uint32_t* head = words(position, 1);
    note_read(head, 1);
    const bool wide = (*head & kWideList) != 0;
    const std::uint32_t count = *head & ~kWideList;
    words(position, list_words(count, wide));
    return {head + 1, head + 1 + count, count, wide ? List::Form::wide : List::Form::narrow,
            in_pm_,   position};
  }

  /// The TIDs at a position, where a word says how many follow. Throws corrupt if they don't lie in
  /// one block.
  std::span<const Tid> tids(Position position) const {
    const std::uint32_t* head = words(position, 1);
    const std::uint32_t* all = words(position, std::uint64_t{1} + *head) + 1;
    note_read(head, 1 + std::uint64_t{*head});
    return {all, *head};
  }

  /// Tells the instruments that words were read.
  void note_read(const std::uint32_t* words, std::uint64_t count) const {
    note_words_read(in_pm_, words, count);
  }

  /// List::lower_bound() for a list of this dimension, with a guess at its greatest value.
  std::uint32_t lower_bound(const List& list, unsigned dimension, std::uint32_t bound) const {
    const std::uint32_t i = list.lower_bound(bound, greatest_->of(dimension));
    if (i < list.count) greatest_->note(dimension, list.value(i));
    return i;
  }

  /// next_wanted() of a list of this dimension.
  std::uint32_t next(const List& list, const Box& box, unsigned dimension, std::uint32_t i,
                     std::uint32_t end) const {
    if (!box.has_set(dimension)) return i;
    return next_wanted(
        box, dimension, i, end, [&](std::uint32_t at) { return list.value(at); },
        [&](std::uint32_t bound) { return lower_bound(list, dimension, bound); });
  }

  /// Bytes of all blocks with nodes.
  std::uint64_t bytes() const;

  /// Returns a copy of all lists in DRAM: the blocks at `to`, which has room for bytes(), and the
  /// first list at `first`, which has room for its copy_bytes(). Both must outlive the copy. Calls
  /// go_on() before each slot and ends early once it returns false; then the copy must not be used.
  template <class GoOn>
  Lists copy(std::uint32_t* to, std::uint64_t* first, const GoOn& go_on) const {
    Lists copy = *this;
    copy.in_pm_ = false;
    copy.first_ = first_.copy(first, [](Ref ref) { return ref; });
    for (std::size_t i = 0; i < slots_.size() && go_on(); ++i) {
      const std::uint64_t words = words_of_slot(i);
      std::memcpy(to, slots_[i].begin, words * sizeof *to);
      copy.slots_[i].begin = to;
      to += words;
    }
    return copy;
  }

  /// Throw corrupt. The first: there is no node at a position that a Ref leads to. The second: a
  /// list names a row that the table does not have, or has in another order.
  [[noreturn]] void throw_no_node(Position position) const;
  [[noreturn]] void throw_wrong_row(Tid tid) const;

 private:
  void read_slots(const TableLayout& table);
  std::uint64_t words_of_slot(std::size_t slot) const {
    return std::min(slots_[slot].words, std::uint64_t{1} << shift_);
  }

  pool::PoolCore& pool_;
  const unsigned dimensions_;
  const unsigned shift_;
  std::vector<Slot> slots_;
  FirstEntries first_;
  bool in_pm_ = true;
  std::shared_ptr<GreatestValues> greatest_;  // shared with the copies
};

}  // namespace perdix::detail::index::elf
