// The lists of one table, as they lie in PM: nodes by their positions. The file is not trusted, so
// every node is checked to lie in a block before it is read; what it says may still be anything.
//
// Immutable, and so thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "index/elf/layout.h"
#include "index/elf/node.h"
#include "pool/pool_core.h"

namespace perdix::index::elf {

/// The first list, which is found by value where its values are dense.
class FirstEntries {
 public:
  /// Entry i of those that may be there: its value, and its Ref, which may be none.
  struct Entry {
    std::uint32_t value;
    Ref ref;
  };

  FirstEntries() = default;

  /// Of a table that has rows. Throws corrupt.
  FirstEntries(const pool::PoolCore& pool, pm::Offset block);

  std::uint32_t count() const { return count_; }
  Entry entry(std::uint32_t i) const;

  /// The first entry that is not below a value; count() if there is none.
  std::uint32_t lower_bound(std::uint32_t bound) const;

 private:
  std::uint32_t count_ = 0;
  std::uint32_t least_ = 0;
  const std::uint64_t* refs_ = nullptr;
  const std::uint32_t* values_ = nullptr;  // null: dense
};

class Lists {
 public:
  /// The words from the begin of a slot to the end of its block.
  struct Slot {
    const std::uint32_t* begin = nullptr;
    std::uint64_t words = 0;
  };

  /// Reads the table's words for slots. Throws corrupt.
  Lists(pool::PoolCore& pool, const TableLayout& table, const Root& root);

  unsigned dimensions() const { return dimensions_; }
  const FirstEntries& first() const { return first_; }
  const std::vector<Slot>& slots() const { return slots_; }

  /// So many words of a node. Throws corrupt if they don't lie in one block.
  const std::uint32_t* words(Position position, std::uint64_t count) const {
    const std::uint64_t slot = position >> shift_;
    const std::uint64_t from = position & ((std::uint64_t{1} << shift_) - 1);
    if (slot >= slots_.size() || from > slots_[slot].words || count > slots_[slot].words - from)
        [[unlikely]]
      throw_corrupt(position);
    return slots_[slot].begin + from;
  }

  List list(Position position) const {
    const std::uint32_t* head = words(position, 1);
    pm::on_read(head, sizeof *head);
    const bool wide = (*head & kWideList) != 0;
    const std::uint32_t count = *head & ~kWideList;
    words(position, list_words(count, wide));
    return {head + 1, head + 1 + count, count, wide ? List::Form::wide : List::Form::narrow,
            position};
  }

  /// The TIDs that are counted at a position.
  std::span<const Tid> tids(Position position) const {
    const std::uint32_t* head = words(position, 1);
    pm::on_read(head, sizeof *head);
    const std::uint32_t* all = words(position, std::uint64_t{1} + *head) + 1;
    pm::on_read(all, *head * sizeof *all);
    return {all, *head};
  }

  [[noreturn]] void throw_corrupt(Position position) const;

 private:
  void read_slots(const TableLayout& table);

  pool::PoolCore& pool_;
  const unsigned dimensions_;
  const unsigned shift_;
  std::vector<Slot> slots_;
  FirstEntries first_;
};

}  // namespace perdix::index::elf
