#include "wal/survivors.h"

#include <array>

#include <fmt/format.h>

#include "wal/owned_block.h"
#include "wal/record.h"
#include "wal/segments.h"

namespace perdix::detail::wal {

Survivors::Survivors(pool::PoolCore& pool, Header& log, const Rings& rings)
    : pool_(pool), seed_(pm::load(log.seed)), rings_(rings) {
  if (const pm::Offset table = pm::load(log.checkpoint); table != pm::kNull) {
    table_.emplace(pool, log, table);
    suffix_.reserve(table_->count());  // most chains that were open have gone on since
  }
  for (unsigned i = 0; i < kStripes; ++i) tails_[i] = checked_tail(i);
}

Position Survivors::checked_tail(unsigned stripe) const {
  const Position start = rings_[stripe]->start();
  if (!table_) return start;
  const Position tail = table_->tail(stripe);
  if (tail < start || tail - start > kRingSize || stripe_of_position(tail) != stripe) {
    throw_corrupt(pool_, fmt::format("the checkpoint of stripe {} is at {:#x}", stripe, tail));
  }
  return tail;
}

/// The position that a link leads to, 0 if it lies before the tails of the table.
Position Survivors::in_suffix(Link link) const noexcept {
  const unsigned stripe = stripe_of_link(link);
  const Position position = position_of(link, rings_[stripe]->start());
  return position >= tails_[stripe] ? position : 0;
}

Position Survivors::scan(unsigned stripe) {
  constexpr unsigned kAtOnce = 16;  // records whose places in the map come from memory together
  const Segments& segments = *rings_[stripe];
  Position position = tails_[stripe];
  // Not further than a ring can reach, whatever a file holds.
  const Position last = segments.start() + kRingSize;
  std::array<TableEntry, kAtOnce> heads;
  unsigned count = 0;
  do {
    for (count = 0; count < kAtOnce && position < last; ++count, position += sizeof(Record)) {
      const std::optional<Content> record = segments.read(seed_, position);
      if (!record) break;
      if (record->owner == 0) {
        throw_corrupt(pool_, fmt::format("the record at {:#x} has no owner", position));
      }
      suffix_.prefetch(record->owner);
      const Position itself = record->type == Type::end ? 0 : position;
      heads[count] = {record->owner, itself ^ (record->first ? 0 : in_suffix(record->link))};
    }
    for (unsigned i = 0; i < count; ++i) suffix_.at(heads[i].owner) ^= heads[i].head;
  } while (count == kAtOnce);
  return position;
}

Position Survivors::find(Owner owner) const {
  if (const Position* head = suffix_.find(owner)) return *head;
  return table_ ? table_->find(owner) : 0;
}

}  // namespace perdix::detail::wal
