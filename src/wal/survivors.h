// The chains that are found after a restart: the head table of the last checkpoint in place, and
// in DRAM what the records behind its tails say (sptree paper, §4.7). W4.
//
// The records of an owner lie in any stripes, and stripes have no common order; but each record
// links to the one before it, so they need none. Take the exclusive or of the positions of all
// records and of all positions that they link to. Every record between two others occurs twice and
// cancels out, and so does all of a chain that has ended. The result is the head of the open chain,
// or 0.
//
// Building it writes nothing. Constant afterwards, and so thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "epoch/reclaimer.h"
#include "pool/pool_core.h"
#include "wal/head_table.h"
#include "wal/layout.h"
#include "wal/marks.h"
#include "wal/owner_map.h"

namespace perdix::detail::wal {

class Segments;

class Survivors : public epoch::Retirable {
 public:
  using Rings = std::array<const Segments*, kStripes>;

  /// Of the log with that header. Throws Errc::corrupt.
  Survivors(pool::PoolCore& pool, Header& log, const Rings& rings);

  /// Reads the records of a stripe from the table's tail (from the start without a table) to the
  /// first that is not valid. Returns where that is: the tail. Throws Errc::corrupt. Once for each
  /// stripe, before anything is found.
  Position scan(unsigned stripe);

  /// The newest record of an owner's chain, 0 if it has none. The table's content is not verified.
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
  Position checkpointed(unsigned stripe) const noexcept { return tails_[stripe]; }

  const std::optional<HeadTable>& table() const noexcept { return table_; }

 private:
  Position checked_tail(unsigned stripe) const;
  Position in_suffix(Link link) const noexcept;

  pool::PoolCore& pool_;
  const std::uint64_t seed_;
  const Rings rings_;
  std::optional<HeadTable> table_;
  Tails tails_{};    // of the table
  OwnerMap suffix_;  // of the records behind them; 0: the owner's last chain has ended
};

}  // namespace perdix::detail::wal
