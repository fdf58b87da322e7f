// What is found of the chains after a restart: the head table of the last checkpoint in place, and
// in DRAM what the records behind its tails say (sptree.txt §4.7). W4.
//
// Building it writes nothing. Constant afterwards, and so thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "pool/pool_core.h"
#include "wal/head_table.h"
#include "wal/layout.h"
#include "wal/owner_map.h"

namespace perdix::wal {

class Segments;

class Survivors {
 public:
  /// `table`: offset of the head table, 0 if there is none.
  Survivors(pool::PoolCore& pool, pm::Offset table, std::uint64_t seed);

  /// Reads the records of a stripe from the table's tail (from the start without a table) to the
  /// first that is not valid. Returns where that is: the tail. Throws Errc::corrupt.
  Position scan(const Segments& segments, unsigned stripe);

  /// The newest record of an owner's chain, 0 if it has none. What the table says is not verified.
  Position find(Owner owner) const;

  /// Calls visit(owner, head) for every chain that has no END.
  template <class F>
  void for_each(F visit) const {
    suffix_.for_each([&](Owner owner, Position head) {
      if (head != 0) visit(owner, head);
    });
    if (!table_) return;
    table_->for_each([&](Owner owner, Position head) {
      if (suffix_.find(owner) == nullptr) visit(owner, head);
    });
  }

  /// Where the table's knowledge of a stripe ends.
  Position checkpointed(const Segments& segments, unsigned stripe) const;

  const std::optional<HeadTable>& table() const noexcept { return table_; }

 private:
  pool::PoolCore& pool_;
  const std::uint64_t seed_;
  std::optional<HeadTable> table_;
  OwnerMap suffix_;  // 0: the last record is an END
};

}  // namespace perdix::wal
