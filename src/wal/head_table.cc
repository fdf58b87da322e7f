#include "wal/head_table.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "util/checksum.h"
#include "util/hash.h"
#include "wal/owned_block.h"

namespace perdix::detail::wal {
namespace {

/// So that a damaged capacity doesn't overflow when it becomes bytes.
constexpr std::uint64_t kMaxCapacity = std::uint64_t{1} << 40;

/// Where the search for an owner begins: each entry gets as many hashes as any other.
std::uint64_t home_of(Owner owner, std::uint64_t capacity) noexcept {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(util::hash(owner)) * capacity >>
                                    64);
}

/// The entry behind another one.
constexpr std::uint64_t next(std::uint64_t entry, std::uint64_t capacity) noexcept {
  return entry + 1 == capacity ? 0 : entry + 1;
}

constexpr std::uint64_t bytes_of(std::uint64_t capacity) noexcept {
  return sizeof(TableHeader) + capacity * sizeof(TableEntry);
}

std::uint64_t checksum_of(const TableHeader& header) noexcept {
  return util::checksum(&header, offsetof(TableHeader, checksum));
}

/// Two thirds full at most, so that a probe is short. Small tables have one size.
constexpr std::uint64_t capacity_for(std::uint64_t entries) noexcept {
  return std::max<std::uint64_t>(entries + entries / 2 + 1, SmallTable::kCapacity);
}

bool sound(const TableHeader& header, std::uint64_t seed) noexcept {
  return header.magic == TableHeader::kMagic && header.seed == seed &&
         header.checksum == checksum_of(header) && header.capacity <= kMaxCapacity &&
         header.count < header.capacity;
}

}  // namespace

HeadTable::HeadTable(pool::PoolCore& pool, Header& log, pm::Offset offset) {
  const std::uint64_t seed = pm::load(log.seed);
  alloc::Calloc& allocator = pool.allocator();
  if (const SmallTable* small = small_table_at(log, pool.offset(&log), offset)) {
    pm::on_read(small, sizeof(SmallTable));
    copy_ = std::make_unique<SmallTable>(*small);
    header_ = &copy_->header;
    capacity_ = SmallTable::kCapacity;
    if (sound(*header_, seed) && header_->capacity == capacity_) return;
  } else if (offset % sizeof(TableEntry) == 0 &&
             allocator.validate_block(offset, sizeof(TableHeader))) {
    header_ = pool.at<TableHeader>(offset);
    pm::on_read(header_, sizeof(TableHeader));
    capacity_ = header_->capacity;
    if (sound(*header_, seed) && allocator.validate_block(offset, bytes())) return;
  }
  throw_corrupt(pool, fmt::format("it has no head table at offset {:#x}", offset));
}

std::uint64_t HeadTable::bytes() const noexcept { return bytes_of(capacity_); }

Position HeadTable::find(Owner owner) const noexcept {
  std::uint64_t at = home_of(owner, capacity_);
  // A damaged table may have no free entry.
  for (std::uint64_t left = capacity_; left > 0; --left, at = next(at, capacity_)) {
    const TableEntry& entry = entries()[at];
    const Owner found = pm::load(entry.owner);
    if (found == owner) return pm::load(entry.head);
    if (found == 0) return 0;
  }
  return 0;
}

TableWriter::TableWriter(alloc::Session& session, pool::PoolCore& pool, Header& log,
                         std::uint64_t most)
    : pool_(pool),
      capacity_(capacity_for(most)),
      offset_(place(session, pool, log, capacity_)),
      header_(pool.at<TableHeader>(offset_)) {
  pool.pm().zero(entries(), capacity_ * sizeof(TableEntry));  // all free
}

pm::Offset TableWriter::place(alloc::Session& session, pool::PoolCore& pool, Header& log,
                              std::uint64_t capacity) {
  if (capacity > SmallTable::kCapacity) return session.reserve(bytes_of(capacity));
  const pm::Offset first = pool.offset(&log.small_tables[0]);
  return pm::load(log.checkpoint) == first ? pool.offset(&log.small_tables[1]) : first;
}

std::uint64_t TableWriter::bytes() const noexcept { return bytes_of(capacity_); }

void TableWriter::prefetch(Owner owner) const noexcept {
  __builtin_prefetch(&entries()[home_of(owner, capacity_)], 1);
}

void TableWriter::enter(const TableEntry& entry) {
  std::uint64_t at = home_of(entry.owner, capacity_);
  while (entries()[at].owner != 0) at = next(at, capacity_);
  pool_.pm().copy(&entries()[at], &entry, sizeof entry);
}

pm::Offset TableWriter::finish(std::uint64_t seed, const Tails& tails) {
  for (unsigned i = 0; i < std::min<std::uint64_t>(added_, kWaiting); ++i) enter(waiting_[i]);
  TableHeader header{TableHeader::kMagic, seed, capacity_, added_, tails, 0, {}};
  header.checksum = checksum_of(header);
  pool_.pm().copy(header_, &header, sizeof header);
  pool_.pm().flush(header_, bytes_of(capacity_));  // log() fences, before the table can be found
  return offset_;
}

}  // namespace perdix::detail::wal
