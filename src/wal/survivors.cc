#include "wal/survivors.h"

#include <fmt/format.h>

#include <array>

#include "wal/owned_block.h"
#include "wal/record.h"
#include "wal/segments.h"

namespace perdix::wal {

Survivors::Survivors(pool::PoolCore& pool, pm::Offset table, std::uint64_t seed)
    : pool_(pool), seed_(seed) {
  if (table == pm::kNull) return;
  table_.emplace(pool, table, seed);
  suffix_.reserve(table_->count());  // most chains that were open have gone on since
}

Position Survivors::checkpointed(const Segments& segments, unsigned stripe) const {
  if (!table_) return segments.start();
  const Position tail = table_->tail(stripe);
  const Position start = segments.start();
  if (tail < start || tail - start > kSegmentsPerStripe * kSegmentSize ||
      stripe_of_position(tail) != stripe) {
    throw_corrupt(pool_, fmt::format("the checkpoint of stripe {} is at {:#x}", stripe, tail));
  }
  return tail;
}

Position Survivors::scan(const Segments& segments, unsigned stripe) {
  constexpr unsigned kAtOnce = 16;  // records whose places in the map come from memory together
  Position position = checkpointed(segments, stripe);
  // Not further than a ring can reach, whatever a file holds.
  const Position last = segments.start() + kSegmentsPerStripe * kSegmentSize;
  std::array<TableEntry, kAtOnce> heads;
  unsigned count = 0;
  do {
    for (count = 0; count < kAtOnce && position < last; ++count, position += sizeof(Record)) {
      const std::optional<Content> record = segments.read(seed_, position);
      if (!record) break;
      if (record->owner == 0 || stripe_of_owner(record->owner) != stripe) {
        throw_corrupt(pool_, fmt::format("the record at {:#x} is in the wrong stripe", position));
      }
      suffix_.prefetch(record->owner);
      heads[count] = {record->owner, record->type == Type::end ? 0 : position};
    }
    for (unsigned i = 0; i < count; ++i) suffix_.set(heads[i].owner, heads[i].head);
  } while (count == kAtOnce);
  return position;
}

Position Survivors::find(Owner owner) const {
  if (const Position* head = suffix_.find(owner)) return *head;
  return table_ ? table_->find(owner) : 0;
}

}  // namespace perdix::wal
