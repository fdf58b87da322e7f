// The operational logs: what makes a write durable (paper, 4.1.5).
//
// There are kLogs rings, and each thread uses one of them. A record is appended with its ring's
// lock held, and is durable when append() returns, after one fence. A record has a checksum (T2),
// so PM needs no tail of a ring.
//
//   auto lock = logs.lock_ring(ring);
//   if (!logs.append(*ring, entry)) ...   // no room: the caller replays and reclaims
//   ring->queue.push(entry, kind);
//   ...
//   number = logs.ends(positions);        // a replay takes what all queues have (waiting.h)
//   heads = logs.reclaim();               // a reclamation, when the replay is durable
//   logs.advance(heads);                  // when the heads are durable
//
// The last quarter of a ring is for erases and for records that cancel others. So an erase finds
// room even if the ring is full of puts that wait for space.
//
// Positions count the bytes since the ring was made. A record never wraps: one that has no room at
// the end of the ring begins at the next multiple of the ring's size.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include "index/common/owned.h"
#include "index/tips/entry.h"
#include "index/tips/layout.h"
#include "index/tips/queue.h"
#include "pm/access.h"
#include "pm/persist.h"
#include "pool/open_index.h"
#include "pool/pool_core.h"
#include "util/line.h"
#include "util/spin_lock.h"
#include "util/stripe.h"

namespace perdix::detail::index::tips {

/// What a record says. The bytes lie in PM, and change when the record is reclaimed.
struct LoggedWrite {
  std::uint64_t number;
  Operation operation;
  std::string_view key;
  std::string_view value;
};

class OperationLogs {
 public:
  OperationLogs(pool::PoolCore& pool, Header& header);
  OperationLogs(const OperationLogs&) = delete;
  OperationLogs& operator=(const OperationLogs&) = delete;

  struct alignas(util::kCacheLine) Ring {
    util::SpinLock lock;                    // guards what follows
    std::byte* bytes = nullptr;             // null: not made yet
    std::uint64_t head = 0;                 // position of the oldest record that is not reclaimed
    std::uint64_t tail = 0;                 // position behind the newest record
    std::uint64_t gap = ~std::uint64_t{0};  // position from which on the last round has no record
    unsigned passes = 0;  // calls to come that do not try to make the ring: no space
    Queue queue;          // of the entries of its records
  };

  /// Makes the first ring, if it is not there. Throws out_of_space.
  void make_first_ring();

  /// Locks the ring of the calling thread, or the first one if the pool has no space for the
  /// thread's own. Sets `ring` to it and returns the lock.
  std::unique_lock<util::SpinLock> lock_ring(Ring*& ring);

  /// Appends the record of an entry, durably, and puts its number into the entry. The ring's queue
  /// then has room for the entry. Returns false if the ring has no room for the record. The caller
  /// holds the ring's lock. Throws out_of_space, bad_alloc, corrupt: nothing has happened then.
  bool append(Ring& ring, Entry& entry);

  /// Like append(), for a record for which has_room() was true, and which will not be queued.
  /// Takes no memory.
  void append_cancel(Ring& ring, Entry& cancel) noexcept;

  /// Whether the ring has room for the records of `entry` and, behind it, of `after`. The caller
  /// holds the ring's lock.
  bool has_room(const Ring& ring, const Entry& entry, const Entry& after) const;

  /// Whether a ring is so full that it should be reclaimed soon. The caller holds its lock.
  bool is_filling(const Ring& ring) const;

  /// Whether any ring is so full. Takes the rings' locks.
  bool is_due();

  using Ends = std::array<Queue::Position, kLogs>;

  /// Sets `ends` to where the queues of all rings end at one moment (D2). Returns the number of the
  /// newest record then.
  std::uint64_t ends(Ends& ends);

  /// The number of the newest record.
  std::uint64_t last_number() const { return last_number_.load(std::memory_order_acquire); }

  /// On opening: finds the tails of the rings, and shows the records that count (T2), except
  /// cancelled ones, in the order of their numbers. Throws corrupt.
  void recover(const std::function<void(const LoggedWrite&)>& show);

  using Heads = std::array<std::uint64_t, kLogs>;

  /// Steps 4 and 5 of a reclamation: from now on records up to header.reclaim_to mean nothing.
  /// Frees their payloads and advances the heads in PM, all of it flushed. Returns the heads.
  Heads reclaim();

  /// Gives the room before these heads to new records. Called once the heads are durable.
  void advance(const Heads& heads);

  /// Tells of the rings and of what their records lead to.
  void walk(Owned& owned) const;

 private:
  const pm::Persister& pm() const { return pool_.pm(); }
  std::uint64_t fitting(std::uint64_t position, std::uint64_t size) const;
  Record* record_at(const Ring& ring, std::uint64_t position) const;
  Record* next_record(const Ring& ring, std::uint64_t& position) const;
  bool fits_inside(const Entry& entry) const;
  bool append_record(Ring& ring, Entry& entry);
  bool is_valid(const Record& record, std::uint64_t position) const;
  std::uint64_t check_of(const Record& record, std::uint64_t position) const;
  LoggedWrite read(const Record& record) const;
  void make_ring(Ring& ring);
  bool try_ring(Ring& ring);
  void open_ring(Ring& ring);
  void write(Record& to, Record& record, const Entry& entry, std::uint64_t position);
  void write_outside(Record& to, Record& record, const Entry& entry, std::uint64_t position);
  std::vector<std::uint64_t> cancelled_among(const std::vector<const Record*>& records) const;
  void free_payload(Record& record);
  std::uint64_t free_records(const Ring& ring, std::uint64_t to);
  template <class Show>
  void for_each_record(const Ring& ring, Show show) const;
  RingPlace& place_of(const Ring& ring) const {
    return header_.rings[static_cast<std::size_t>(&ring - rings_.data())];
  }

  pool::PoolCore& pool_;
  Header& header_;
  const std::uint64_t ring_bytes_;
  std::array<Ring, kLogs> rings_;
  alignas(util::kCacheLine) std::atomic<std::uint64_t> last_number_{0};
};

}  // namespace perdix::detail::index::tips
