// What the framework Tips keeps in PM besides the plugged-in index itself.
//
// Invariants, which recovery relies on (docs/durability/tips.md has the cases):
//   T1. The root word is the offset of the Header, behind which the object of `plugin` lies in the
//       same block. All of it lies at the address at which it was made: the pool's address is
//       fixed.
//   T2. A record of an operational log counts if its checksum is right for its position and its
//       number is above `reclaimed`. Numbers ascend in each log, and no two records have the same.
//   T3. An undo record counts if its checksum is right for `epoch` and its place, and no record
//       before it is wrong; and only while `flushed` is not `epoch`.
//   T4. Every block that the plug-in was given since the epoch began has an entry in the memory
//       log, and so has every block that it gave back since. An entry is 0, or the offset of an
//       allocated block with a mark.
//   T5. The first ring exists. `former_reserve` is 0.
//   T6. Header, the blocks of both logs, rings, and the payloads of their records are one
//       allocated block each, large enough for what it holds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pm/offset.h"

namespace perdix::detail::index::tips {

inline constexpr unsigned kLogs = 8;
inline constexpr std::uint64_t kHeaderMagic = 0x31'5350'4954'5250;  // "PRTIPS1"
inline constexpr std::uint64_t kRecordAlignment = pm::kLineSize;

// Of a ring. An erase finds room in the last quarter, so a quarter has room for each key.
inline constexpr std::uint32_t kMinLogBytes = std::uint32_t{256} << 10;
inline constexpr std::uint32_t kMaxLogBytes = std::uint32_t{256} << 20;

/// An operational log: a ring that is made when a thread first needs it, and lasts.
struct RingPlace {
  pm::Offset block;    // 0: none yet; with the commit of its allocation
  std::uint64_t head;  // position of a record, or of the end; those before it are reclaimed
};
static_assert(sizeof(RingPlace) == 16);

/// Written at creation, but for the second line and `rings`. The plug-in's object follows.
struct Header {
  std::uint64_t magic;
  std::uint64_t nonce;         // random; in the checksum of each record
  std::uint64_t base;          // address of the pool
  std::uint64_t ring_bytes;    // of each ring; a multiple of kRecordAlignment
  pm::Offset undo;             // first LogBlock of the undo log
  pm::Offset memory;           // first LogBlock of the memory log
  std::uint64_t object_bytes;  // of the plug-in's object
  std::uint64_t reserved0;
  // The line of the reclamation; its holder writes it. Stores of one line reach PM in their order.
  std::uint64_t epoch;       // of the undo records that count; from 1
  std::uint64_t flushed;     // the last epoch whose changes of the index are durable
  std::uint64_t reclaim_to;  // what `reclaimed` becomes when `flushed` is `epoch`; before `flushed`
  std::uint64_t reclaimed;   // records with this number or a lower one mean nothing
  pm::Offset former_reserve;    // an earlier release kept blocks for replays while it ran
  std::array<char, 24> plugin;  // its name, written at creation; zeros behind it
  std::array<RingPlace, kLogs> rings;
};
static_assert(sizeof(Header) == 256 && std::is_trivially_copyable_v<Header>);
static_assert(std::has_unique_object_representations_v<Header>, "no padding");
static_assert(offsetof(Header, epoch) == 64 && offsetof(Header, rings) == 128);

/// What a record does to its key.
enum class Operation : std::uint8_t {
  put = 1,
  erase = 2,
  cancel = 3,  ///< an earlier record means nothing; the key is its number
};
static_assert(sizeof(Operation) == 1);

/// A record: this, then the key, then the value, up to a multiple of a line. If `outside` is set,
/// these two lie in the block `payload`, which belongs to the record.
struct Record {
  std::uint64_t check;   // of all the rest but `payload`, and of what is covered without being
                         // stored: nonce and position
  std::uint64_t number;  // T2
  std::uint32_t value_size;
  std::uint16_t key_size;
  std::uint8_t operation;
  std::uint8_t outside;  // 0 or 1
  pm::Offset payload;    // 0: none, or it was freed, and the record reclaimed
};
static_assert(sizeof(Record) == 32 && std::has_unique_object_representations_v<Record>);

/// One of the blocks of the undo log or the memory log. Those of the undo log hold anything.
struct LogBlock {
  pm::Offset next;      // 0: none; changed by the commit of the next block's allocation
  std::uint64_t bytes;  // of the whole block, as its log has them
};
static_assert(sizeof(LogBlock) == 16);

inline constexpr std::uint64_t kUndoBytes = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kMemoryBytes = 2048;

/// What a line, as far as it belongs to one block, held when the epoch began.
struct UndoRecord {
  std::uint64_t check;  // of the rest, the epoch and the record's place in the log
  pm::Offset offset;
  std::uint64_t size;  // 1 to 64
  std::uint64_t reserved;
  std::array<std::byte, pm::kLineSize> bytes;  // `size` of them
};
static_assert(sizeof(UndoRecord) == 96);
static_assert(std::has_unique_object_representations_v<UndoRecord>);

inline constexpr unsigned kUndoPerBlock = (kUndoBytes - sizeof(LogBlock)) / sizeof(UndoRecord);

/// Entries of the memory log: the offset of a block, which is a multiple of 16, and a mark.
inline constexpr std::uint64_t kAllocated = 1;
inline constexpr std::uint64_t kFreed = 2;
inline constexpr std::uint64_t kMarks = 15;

inline constexpr unsigned kMemoryPerBlock =
    (kMemoryBytes - sizeof(LogBlock)) / sizeof(std::uint64_t);

}  // namespace perdix::detail::index::tips
