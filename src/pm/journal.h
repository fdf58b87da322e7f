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
//   J4. A range longer than kLongRange is in the batch like others if the batch stays small by
//       that: at most a fixed part of a half. Else the range is synced in place, before the batch
//       that names it: what earlier batches say of these lines is void (they are *revoked*), since
//       a replay would write them over the range.
//   J5. The area is two halves, of which one is filled at a time. When it is full, it is drained:
//       all that it holds is synced in its place, then it gets a new epoch, durably. Only then it
//       is free, and is filled again: replaying some batches without later ones would make lines
//       older. Batches of other epochs mean nothing.
//   J6. Halves are filled in turns, and each is free before it is filled. So at any moment the
//       batches of the half that is not being filled are all older than those of the other one, and
//       are complete; or it has none.
//   J7. The journal moves to another area when it is empty: the other one is made empty, durably,
//       and then it is named, durably (JournalPlace::root). So what is named is always right.
//
// An epoch is a random number, so that bytes of a user's value, which lie in the journal too, are
// never taken for a batch. Each opening durably begins a new epoch in both halves before the
// superblock says that the journal counts. What earlier runs left in the journal then means
// nothing, whether it is whole or cut off.
//
// What a crash leaves of a line is then what the last whole batch says of it, or what the kernel
// has written back, if there is none: never less than what was durable, and otherwise any prefix of
// the stores made to it, as everywhere in perdix (pm/persist.h).
//
// The layout of a half: a page that holds only the epoch, then batches, each beginning at a sector:
// BatchHeader, the offsets of the lines, the revoked ranges, the lines. Sequence numbers go on from
// one half to the other, which tells the older one. Earlier releases had one area of this form,
// whose sequence began at 0 (JournalPlace::halves).
//
// A full half is drained by a thread of its own (pm/drainer.h) through a device of its own, while
// the other one is filled; a thread that needs the half before waits for it. Without such a thread,
// the thread that needs the half drains it. If draining fails, the half stays as it is: nothing
// that was durable is lost, and the error is that of the next append().
//
// Not thread-safe: PageSync has one thread at a time call it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pm/drainer.h"
#include "pm/file.h"
#include "pm/offset.h"
#include "pm/sync_device.h"
#include "pm/sync_request.h"

namespace perdix::detail::pm {

/// Ranges of more bytes may be synced in their own place.
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
  /// 1: as earlier releases have it. A Journal always has 2.
  unsigned halves = 2;
  /// Of the word that names the area for whom has to find it, in no line that is journaled. 0:
  /// none.
  Offset root = 0;
  std::uint64_t name = 0;  ///< of the area
};

class Journal {
 public:
  /// Devices must outlive this. What the journal contains must not be needed any more: it was
  /// replayed, or the pool was closed. `background` syncs beside `device`, and reports every error
  /// of the file by itself; null: halves are drained by the threads that need them.
  Journal(const JournalPlace& place, SyncDevice& device, SyncDevice* background = nullptr);

  /// Makes the journal empty, durably: before the first append(). Returns 0 or an errno.
  int start() noexcept;

  /// Drains the journal, then goes on in another area of the same pool, whose content is not
  /// needed. Returns 0 or an errno.
  int move(const JournalPlace& place) noexcept;

  /// Adds one batch with the ranges and the changes of all requests of a group, and makes it
  /// durable. If there is no room, goes on in the other half, and waits for it if it is not free.
  /// Does not make the changes in memory (J3). Takes no memory that it needs. Returns 0 or an
  /// errno, also of a drain that has failed since the last call.
  int append(const SyncRequest* group) noexcept;

  /// Drains both halves. Returns 0 or an errno.
  int checkpoint() noexcept;

  /// Ends the background thread, once it has drained what it drains now.
  void end_background() noexcept { drainer_.end(); }

  /// Makes the background thread end early: what it drains is not needed any more.
  void give_up_background() noexcept { drainer_.give_up(); }

 private:
  struct Half {
    Offset area = 0;
    std::uint64_t bytes = 0;
    std::uint64_t epoch = 0;
    std::uint64_t position = kSyncPage;  // in the area: where the next batch begins

    bool empty() const noexcept { return position == kSyncPage; }
  };

  std::uint64_t& epoch_of(const Half& half) const noexcept {
    return *reinterpret_cast<std::uint64_t*>(place_.base + half.area);
  }
  void use_area() noexcept;
  int name_area() noexcept;
  int turn_over() noexcept;
  int make_free(Half& half) noexcept;
  int drain(Half& half, SyncDevice& device) noexcept;
  int sync_homes(const Half& half, SyncDevice& device) const noexcept;
  int sync_homes_of_each_batch(const Half& half, SyncDevice& device) const noexcept;
  std::vector<Offset> pages_of(const Half& half) const;
  template <class Visit>
  void for_each_batch(const Half& half, const Visit& visit) const;
  int renew(Half& half, SyncDevice& device) noexcept;
  void collect(const SyncRequest* group) noexcept;
  void add_lines(MemoryRange range) noexcept;
  void collect_long(MemoryRange range) noexcept;
  int sync_long_ranges() noexcept;
  void build(const SyncRequest* group) noexcept;
  void overlay(const SyncRequest* group, std::byte* images) const noexcept;
  Offset offset_of(std::uintptr_t address) const noexcept {
    return address - reinterpret_cast<std::uintptr_t>(place_.base);
  }

  JournalPlace place_;
  SyncDevice& device_;
  std::array<Half, 2> halves_;
  unsigned active_ = 0;         // the half that is being filled
  std::uint64_t sequence_ = 0;  // of the next batch
  std::vector<Offset> lines_;   // of the batch that is being made; never exceeds its capacity
  std::vector<std::uint64_t> revoked_;  // begin and end of each range, in turns; the same
  std::vector<std::byte> batch_;        // the batch that is being made
  Drainer drainer_;                     // last: its thread uses the half that is not active
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
