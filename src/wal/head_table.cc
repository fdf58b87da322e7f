#include "wal/head_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "util/checksum.h"
#include "util/hash.h"
#include "util/huge_vector.h"
#include "wal/owned_block.h"

namespace perdix::wal {
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

bool sound(const TableHeader& header, std::uint64_t seed) noexcept {
  return header.magic == TableHeader::kMagic && header.seed == seed &&
         header.checksum == checksum_of(header) && header.capacity <= kMaxCapacity &&
         header.count < header.capacity;
}

}  // namespace

HeadTable::HeadTable(pool::PoolCore& pool, pm::Offset offset, std::uint64_t seed) {
  alloc::Calloc& allocator = pool.allocator();
  if (offset % sizeof(TableEntry) == 0 && allocator.validate_block(offset, sizeof(TableHeader))) {
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

pm::Offset write_table(alloc::Session& session, pool::PoolCore& pool, std::uint64_t seed,
                       const Tails& tails, std::span<const TableEntry> heads) {
  // Two thirds full at most, so that a probe is short. Small ones have one size: where the pool is
  // full, there is a block for the next.
  constexpr std::uint64_t kLeast = 8;
  const std::uint64_t capacity =
      std::max<std::uint64_t>(heads.size() + heads.size() / 2 + 1, kLeast);
  util::HugeVector<TableEntry> entries(capacity, TableEntry{});  // {}: all free, not unset
  for (const TableEntry& head : heads) {
    std::uint64_t at = home_of(head.owner, capacity);
    while (entries[at].owner != 0) at = next(at, capacity);
    entries[at] = head;
  }
  TableHeader header{TableHeader::kMagic, seed, capacity, heads.size(), tails, 0, {}};
  header.checksum = checksum_of(header);
  const pm::Offset offset = session.reserve(bytes_of(capacity));
  auto* to = pool.at<TableHeader>(offset);
  pool.pm().copy(to, &header, sizeof header);
  pool.pm().copy(to + 1, entries.data(), capacity * sizeof(TableEntry));
  pool.pm().flush(to, bytes_of(capacity));  // log() fences, before the table can be found
  return offset;
}

}  // namespace perdix::wal
