// Makes the lists of a table from rows in DRAM: sorts the rows by one dimension after the other,
// and writes each node as soon as its values are known, in preorder (L3).
//
//   Builder builder(replacement, dimensions, slot_shift, steps);
//   builder.add(value, rows, order, scratch);   // for each value of the first dimension, ascending
//   builder.finish();
//
// Each call of add() gives the group of rows that share a value of the first dimension. A group
// that is too large for a batch is sorted by row numbers, dimension by dimension, until its parts
// are small enough. The rows of a part are then copied into a batch, and the rest of the work on
// them happens in the processor's caches.
//
// Memory: 8 bytes for each row of the largest group, and a batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/elf/progress.h"
#include "index/elf/replacement.h"
#include "index/elf/row_sorter.h"
#include "index/elf/rows.h"

namespace perdix::detail::index::elf {

class Builder {
 public:
  /// The steps of all dimensions but the first are the builder's.
  Builder(Replacement& to, unsigned dimensions, std::uint32_t slot_shift, Steps& steps)
      : to_(to), dimensions_(dimensions), slot_shift_(slot_shift), steps_(steps) {}

  /// Adds the rows whose numbers `order` has, all of which have this value in the first dimension.
  /// Rows that are equal in all dimensions must be in the order of their TIDs. `scratch` is of the
  /// same size; both are overwritten. Throws Cancelled, out_of_space, too_large, bad_alloc.
  void add(std::uint32_t value, const ColumnRows& rows, std::span<std::uint32_t> order,
           std::span<std::uint32_t> scratch);

  /// Adds all rows of a batch, all of which have this value in the first dimension.
  void add(std::uint32_t value, const Batch& batch);

  /// Links the lists to the table. Once, when all rows were added. Throws as add().
  void finish() { to_.finish_lists(values_, refs_); }

 private:
  /// Row numbers, and room for as many, which sorting needs.
  struct Order {
    std::span<std::uint32_t> rows;
    std::span<std::uint32_t> scratch;

    std::size_t size() const { return rows.size(); }
    Order part(std::size_t begin, std::size_t end) const {
      return {rows.subspan(begin, end - begin), scratch.subspan(begin, end - begin)};
    }
  };

  void add_ref(std::uint32_t value, Ref ref);
  Order whole(const Batch& batch);

  template <class Rows>
  Ref emit(const Rows& rows, const Order& order, unsigned dimension);
  template <class Rows>
  Ref emit_list(const Rows& rows, const Order& order, unsigned dimension);
  Ref emit_batch(const ColumnRows& rows, const Order& order, unsigned dimension);
  template <class Rows>
  Ref emit_mono(const Rows& rows, std::span<const std::uint32_t> order, unsigned dimension);
  template <class Rows>
  Ref emit_tids(const Rows& rows, std::span<const std::uint32_t> order);
  template <class Rows>
  bool all_equal(const Rows& rows, std::span<const std::uint32_t> order, unsigned dimension);
  void set_pointer(Position list, std::uint32_t count, bool wide, std::uint32_t i, Ref to,
                   bool last_dimension);

  Replacement& to_;
  const unsigned dimensions_;
  const std::uint32_t slot_shift_;
  Steps& steps_;
  RowSorter sorter_;
  Batch batch_;
  util::HugeVector<std::uint32_t> batch_order_;  // and scratch
  std::vector<std::uint32_t> values_;            // of the first list
  std::vector<Ref> refs_;
};

}  // namespace perdix::detail::index::elf
