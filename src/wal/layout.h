// What a log keeps in PM, and nothing else. docs/format/wal.md describes it.
//
// Invariants, which check.cc verifies and recovery relies on. They hold at every crash point once
// the allocator's recyclable log has been resolved (docs/durability/wal.md):
//   W1. A record is valid if its check fits its content, its position and the log's seed. Neither
//       old bytes of a reused segment nor those of another log pass.
//   W2. The records of a stripe are whole from its start to its tail: the tail is the first
//       position behind the checkpoint that has no valid record. Each segment between them is in
//       the ring.
//   W3. Ring words that are not 0 name distinct allocated blocks: those of the segments from the
//       start to a few behind the tail's; and, if a crash interrupted a reclamation, of segments
//       right before the start.
//   W4. The head table and the records behind its tails name the newest record of every chain that
//       has no END: what the records behind the tails say of an owner counts, else the table. If a
//       record lies behind the tails, so do those that its owner got later.
//   W5. Every record of a chain without END lies at or behind the start of the stripe that it is
//       in; so do the tails of the head table.
//   W6. From a stripe's tail to the end of its last segment there is room for the END of each chain
//       without END whose first record lies in the stripe, and for the further records that the
//       chain was promised when it began. So a chain can always be ended.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pm/offset.h"

namespace perdix::detail::wal {

/// A key or a value as an index stores it: a number, or a reference to bytes.
using Word = std::uint64_t;

/// Whom a chain belongs to: 1 .. kMaxOwner.
using Owner = std::uint64_t;
inline constexpr unsigned kOwnerBits = 37;
inline constexpr Owner kMaxOwner = (Owner{1} << kOwnerBits) - 1;

/// Of a record: bytes of those before it since its stripe began, a multiple of 32, plus the number
/// of the stripe. No two records of a log ever have the same, also not those of one place in
/// different rounds of the ring. Where in its segment a record lies: written_at(). 0: none.
using Position = std::uint64_t;

inline constexpr unsigned kStripes = 8;
inline constexpr std::uint64_t kSegmentSize = std::uint64_t{64} << 10;
inline constexpr unsigned kSegmentsPerStripe = 1024;

enum class Type : std::uint8_t {
  put = 0,
  erase_key = 1,
  erase_slot = 2,  ///< or, for engines whose leaves have no slots to name, a note of their own
  end = 3,  ///< closes the chain: all of it has been merged. The owner's next record begins another
};

static_assert(sizeof(Type) == 1);

/// A change. Never straddles a line. Written once, under the stripe's lock, in the order of its
/// fields; `check` is the commit word of whatever the record says.
struct Record {
  std::uint64_t where;  ///< owner:37 | type:2 | link:25
  Word key;
  Word value;
  std::uint64_t check;  ///< W1; never 0
};

static_assert(std::is_trivially_copyable_v<Record>);
static_assert(std::has_unique_object_representations_v<Record>);
static_assert(sizeof(Record) == 32 && offsetof(Record, check) == 24);
static_assert(pm::kLineSize % sizeof(Record) == 0 && kSegmentSize % pm::kLineSize == 0);
static_assert(kStripes <= sizeof(Record), "the low bits of a position hold its stripe");

/// A position in 25 bits: the stripe in the low three, above them the record's number in two rounds
/// of the ring. A record links to the one before it in its chain, an END to the last one, the first
/// of a chain to itself.
///
/// Why two rounds: opening the log reads links of records behind the checkpoint, and must know
/// those that lead before it, to records that may be reclaimed by then. They were there when it
/// was taken, so less than a round before its tail; and the tail now is less than a round behind
/// the start, which is not behind that.
using Link = std::uint32_t;
inline constexpr unsigned kLinkBits = 25;
inline constexpr std::uint64_t kRingSize = kSegmentsPerStripe * kSegmentSize;
inline constexpr std::uint64_t kLinkedRecords = 2 * kRingSize / sizeof(Record);  // of a stripe
static_assert(kStripes * kLinkedRecords == std::uint64_t{1} << kLinkBits);

struct StripeLayout {
  /// All records before it are reclaimed; a position, of a segment's first record. Changed under
  /// the stripe's space lock, and durable before the segments below it are freed.
  Position start;
  /// A ring: word `position / kSegmentSize % kSegmentsPerStripe` is the offset of the position's
  /// segment, 0 if there is none. Each is the commit word of its segment's allocation and release.
  std::array<pm::Offset, kSegmentsPerStripe> segments;
};
static_assert(sizeof(StripeLayout) == 8 + 8 * kSegmentsPerStripe);

/// Newest record of a chain, as it was when the checkpoint was taken.
struct TableEntry {
  Owner owner;  ///< 0: the entry is free
  Position head;
};
static_assert(sizeof(TableEntry) == 16);

/// The head table: this followed by `capacity` entries. Never changes while it counts. An
/// open-addressing hash table: an owner's entry is at hash(owner) * capacity / 2^64, or follows it
/// without a free entry between.
struct TableHeader {
  static constexpr std::uint64_t kMagic = 0x3142'4154'5744'5250;  // "PRDWTAB1"

  std::uint64_t magic;
  std::uint64_t seed;                    ///< of the log
  std::uint64_t capacity;                ///< more than `count`
  std::uint64_t count;                   ///< entries that are not free
  std::array<Position, kStripes> tails;  ///< the table speaks of the records before these
  std::uint64_t checksum;                ///< of the fields above
  std::array<std::uint64_t, 3> reserved;
};
static_assert(std::has_unique_object_representations_v<TableHeader>);
static_assert(offsetof(TableHeader, checksum) == 96 && sizeof(TableHeader) == 128);

/// A head table of few entries that needs no separate block, so that a checkpoint of few chains can
/// be taken where the pool is full.
struct SmallTable {
  static constexpr std::uint64_t kCapacity = 56;

  TableHeader header;
  std::array<TableEntry, kCapacity> entries;
};
static_assert(std::has_unique_object_representations_v<SmallTable>);
static_assert(sizeof(SmallTable) == 1024);

/// One block. The index keeps its offset.
struct Header {
  static constexpr std::uint64_t kMagic = 0x3447'4f4c'5744'5250;  // "PRDWLOG4"

  // Written once, by create().
  std::uint64_t magic;
  std::uint64_t seed;      ///< of all checks; drawn anew for every log
  std::uint64_t checksum;  ///< of the fields above

  /// Offset of the head table, 0 before the first one: that of a block, or of one of the small
  /// tables below. The commit word of a checkpoint.
  pm::Offset checkpoint;

  std::array<std::uint64_t, 4> reserved;
  std::array<StripeLayout, kStripes> stripes;
  /// The one that does not count is written by the next checkpoint of few chains.
  std::array<SmallTable, 2> small_tables;
};
static_assert(std::has_unique_object_representations_v<Header>);
static_assert(offsetof(Header, checkpoint) == 24 && offsetof(Header, stripes) == pm::kLineSize);
static_assert(offsetof(Header, small_tables) == pm::kLineSize + kStripes * sizeof(StripeLayout));
static_assert(offsetof(Header, small_tables) % pm::kLineSize == 0);
static_assert(sizeof(Header) == offsetof(Header, small_tables) + 2 * sizeof(SmallTable));

/// The small table that lies at an offset of the pool; nullptr if none of the header's does.
inline SmallTable* small_table_at(Header& header, pm::Offset header_offset, pm::Offset offset) {
  for (SmallTable& table : header.small_tables) {
    const auto distance = static_cast<pm::Offset>(reinterpret_cast<const char*>(&table) -
                                                  reinterpret_cast<const char*>(&header));
    if (offset == header_offset + distance) return &table;
  }
  return nullptr;
}

}  // namespace perdix::detail::wal
