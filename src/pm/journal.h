// The redo journal of a pool whose durability is `power` on an ordinary file: a part of the pool to
// which lines are written that must be durable, so that one sync of a few adjacent sectors takes
// the place of one for each page that they lie in.
//
//   J1. A batch is a number of lines, each with the bytes that it held at one moment while the
//       batch was being made. A checksum detects an incomplete batch; it and all batches behind it
//       count as never written.
//   J2. Batches are made one after the other. So what a later batch says of a line is newer, and a
//       line that was durable once never gets older by a replay.
//   J3. The stores of a commit are in the batch, and are made in memory after the batch is durable.
//       So the file cannot hold them without what the batch holds besides, though the kernel may
//       write any page back at any moment.
//   J4. A range longer than kLongRange is synced in place, before the batch that names it: what
//       earlier batches say of these lines is void (they are *revoked*).
//   J5. A checkpoint first syncs in its place all that the journal holds, then begins a new epoch,
//       durably. Only then are batches overwritten, since replaying some batches without the later
//       ones would make lines older. Batches of other epochs mean nothing.
//
// An epoch is a random number, so that bytes of a user's value, which lie in the journal too, are
// never taken for a batch. Each opening durably begins a new epoch before the superblock says that
// the journal counts. What earlier runs left in the journal then means nothing, whether it is whole
// or cut off.
//
// What a crash leaves of a line is then what the last whole batch says of it, or what the kernel
// has written back, if there is none: never less than what was durable, and otherwise any prefix of
// the stores made to it, as everywhere in perdix (pm/persist.h).
//
// The layout: a page that holds only the epoch, then batches, each beginning at a sector:
// BatchHeader, the offsets of the lines, the revoked ranges, the lines.
//
// Not thread-safe: PageSync has one thread at a time call it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pm/file.h"
#include "pm/offset.h"
#include "pm/sync_device.h"
#include "pm/sync_request.h"

namespace perdix::detail::pm {

/// Ranges of more bytes are synced in their own place.
inline constexpr std::size_t kLongRange = 4096 + kLineSize;

/// The most ranges that a batch revokes, and the most lines that it has. One request and the ranges
/// noted by store_for_all(), as many again, always fit.
inline constexpr std::size_t kMaxBatchRevoked = 2 * PageNotes::kCapacity;
inline constexpr std::size_t kMaxBatchLines =
    2 * PageNotes::kCapacity * (kLongRange / kLineSize) + kMaxChanges;

/// How much a batch would hold of the threads' requests, if no line came twice.
struct BatchSize {
  std::size_t lines = 0;
  std::size_t revoked = 0;

  void add(const SyncRequest& request) noexcept;

  /// Whether the requests fit into one batch. They get one half of it: the other half is for the
  /// ranges noted by store_for_all().
  bool fits() const noexcept {
    return lines <= kMaxBatchLines / 2 && revoked <= kMaxBatchRevoked / 2;
  }
};

/// Where the journal of a pool lies, and which lines it may contain.
struct JournalPlace {
  std::byte* base;      ///< of the pool
  Offset area;          ///< page-aligned
  std::uint64_t bytes;  ///< of the area
  Offset first_line;    ///< lines before this one are never journaled
};

class Journal {
 public:
  /// `device` must outlive this. What the journal contains must not be needed any more: it was
  /// replayed, or the pool was closed.
  Journal(const JournalPlace& place, SyncDevice& device);

  /// Makes the journal empty, durably: before the first append(). Returns 0 or an errno.
  int start() noexcept;

  /// Adds one batch with the ranges and the changes of all requests of a group, and makes it
  /// durable. Takes a checkpoint first if there is no room. Does not make the changes in memory
  /// (J3). Takes no memory. Returns 0 or an errno.
  int append(const SyncRequest* group) noexcept;

  /// Makes the journal's lines durable in place, then empties the journal durably. Returns 0 or an
  /// errno.
  int checkpoint() noexcept;

 private:
  void collect(const SyncRequest* group) noexcept;
  int sync_long_ranges(const SyncRequest* group) noexcept;
  void build(const SyncRequest* group) noexcept;
  void overlay(const SyncRequest* group, std::byte* images) const noexcept;
  Offset offset_of(std::uintptr_t address) const noexcept {
    return address - reinterpret_cast<std::uintptr_t>(place_.base);
  }

  JournalPlace place_;
  SyncDevice& device_;
  std::uint64_t epoch_ = 0;
  std::uint64_t position_ = 0;  // in the area: where the next batch begins
  std::uint64_t sequence_ = 0;  // of the next batch
  Offset begin_ = ~Offset{0};   // all lines since the last checkpoint lie from here
  Offset end_ = 0;              // to here
  std::vector<Offset> lines_;   // of the batch that is being made; never exceeds its capacity
  std::vector<std::uint64_t> revoked_;  // begin and end of each range, in turns; the same
  std::vector<std::byte> batch_;        // the batch that is being made
};

/// Restores a pool to its state when the last batch became durable, before anything else reads
/// lines behind `first_line`. In three steps, so that a pool that is refused in between keeps its
/// bytes:
///
///   Replay replay(place, pool_size, path);      // reads the batches
///   give_space(replay.pages()); replay.apply(); // the pool reads as after the replay
///   replay.finish(device);                      // and stays so
///
/// Until finish() has returned a crash finds the batches again, and they may be replayed once more.
class Replay {
 public:
  /// Reads the batches. `pool_size`: what lies behind that is not the pool's. Throws Errc::corrupt
  /// if a batch names lines that no pool journals; `path` is for the message.
  Replay(const JournalPlace& place, std::uint64_t pool_size, std::string path);
  ~Replay();  ///< takes back what apply() has done, unless finish() was called
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// The pages that apply() stores to, each once.
  std::vector<FileRange> pages() const;

  /// Stores the lines of the batches to the pool, in memory. The caller has made sure that pages()
  /// have space in the file.
  void apply();

  /// Makes the pool durable, then the journal empty. Throws io_error.
  void finish(SyncDevice& device);

 private:
  class Batches;
  struct Line {
    Offset offset;
    std::array<std::byte, kLineSize> bytes;
  };

  const JournalPlace place_;
  const std::uint64_t pool_size_;
  const std::string path_;
  const std::unique_ptr<const Batches> batches_;
  std::vector<Line> before_;  // what apply() has overwritten, until finish()
};

}  // namespace perdix::detail::pm
