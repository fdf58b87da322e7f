// The head table of a checkpoint: which chains were open, and their newest records (sptree paper,
// §4.7).
//
// Lookups happen in place, in PM, so opening costs no time for it; the entries are not covered by a
// checksum for the same reason. The user of an entry verifies the record that it leads to.
//
// A table in a block never changes, so lookups are thread-safe as long as it isn't freed. A small
// table in the log's header is written again by a later checkpoint; so it is copied.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <memory>

#include "alloc/session.h"
#include "pm/access.h"
#include "pool/pool_core.h"
#include "wal/marks.h"

namespace perdix::detail::wal {

class HeadTable {
 public:
  /// Of the log with that header. Throws Errc::corrupt if no table of the log is at the offset.
  HeadTable(pool::PoolCore& pool, Header& log, pm::Offset offset);

  /// The head of an owner's chain, 0 if it had none. Cost: usually one line.
  Position find(Owner owner) const noexcept;

  Position tail(unsigned stripe) const noexcept { return pm::load(header_->tails[stripe]); }

  /// Bytes of the block that it needs, if it is in one.
  std::uint64_t bytes() const noexcept;

  /// Calls visit(owner, head) for each entry; those of a damaged file may be anything.
  template <class F>
  void for_each(F visit) const {
    for (std::uint64_t i = 0; i < capacity_; ++i) {
      if (const Owner owner = pm::load(entries()[i].owner); owner != 0) {
        visit(owner, pm::load(entries()[i].head));
      }
    }
  }

  /// As the header says.
  std::uint64_t count() const noexcept { return pm::load(header_->count); }

 private:
  const TableEntry* entries() const noexcept {
    return reinterpret_cast<const TableEntry*>(header_ + 1);
  }

  std::unique_ptr<SmallTable> copy_;
  const TableHeader* header_;
  std::uint64_t capacity_;
};

/// Writes a table in place: to a new block of a session, or, if it is for few entries, to the small
/// table of the header that does not count.
class TableWriter {
 public:
  /// For at most this many entries. Throws Errc::out_of_space, too_large; neither for few.
  TableWriter(alloc::Session& session, pool::PoolCore& pool, Header& log, std::uint64_t most);

  /// No owner twice.
  void add(Owner owner, Position head) {
    assert(added_ + 1 < capacity_);  // else there would be no end to a probe
    TableEntry& place = waiting_[added_ % kWaiting];
    if (added_ >= kWaiting) enter(place);
    place = {owner, head};
    prefetch(owner);
    ++added_;
  }

  /// Its offset, complete and flushed: the session's log() makes it durable.
  pm::Offset finish(std::uint64_t seed, const Tails& tails);

  std::uint64_t bytes() const noexcept;

 private:
  /// Entries that wait for the lines that they belong to.
  static constexpr unsigned kWaiting = 16;

  TableEntry* entries() const noexcept { return reinterpret_cast<TableEntry*>(header_ + 1); }
  void prefetch(Owner owner) const noexcept;
  void enter(const TableEntry& entry);

  static pm::Offset place(alloc::Session& session, pool::PoolCore& pool, Header& log,
                          std::uint64_t capacity);

  pool::PoolCore& pool_;
  const std::uint64_t capacity_;
  const pm::Offset offset_;
  TableHeader* const header_;
  std::uint64_t added_ = 0;
  std::array<TableEntry, kWaiting> waiting_;
};

}  // namespace perdix::detail::wal
