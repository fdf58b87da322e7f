// The operational logs: what makes a write durable (paper, 4.1.5).
//
// kLogs rings, of which a thread uses one. A record is appended with its ring's lock held; it is
// durable when append() returns, after one fence. A record checks itself (T2), so no tail is kept.
//
// The last quarter of a ring is for erases, and for records that cancel others: so an erase finds
// room in a log of puts that have to wait for space.
//
// Positions count the bytes since the ring was made. A record never wraps: one that has no room at
// the end of the ring begins at the next multiple of its size.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include "index/tips/entry.h"
#include "index/tips/layout.h"
#include "pm/access.h"
#include "pm/persist.h"
#include "pool/open_index.h"
#include "pool/pool_core.h"
#include "util/line.h"
#include "util/spin_lock.h"
#include "util/stripe.h"

namespace perdix::detail::index::tips {

/// What a record says.
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
    util::SpinLock lock;         // guards what follows
    std::byte* bytes = nullptr;  // null: not made yet
    std::uint64_t head = 0;      // positions
    std::uint64_t tail = 0;
    unsigned passes = 0;        // calls that do not try to make it, since there was no space
    bool outside = false;       // a record between them may have its payload outside
    std::vector<Entry*> queue;  // entries of records that were not replayed, in their order
  };

  /// Makes the first ring, if it is not there. Throws out_of_space.
  void make_first_ring();

  /// The ring of the calling thread, or the first one if there is no space for its own. Locked.
  std::unique_lock<util::SpinLock> lock_ring(Ring*& ring);

  /// With the ring's lock: appends the record of an entry, and puts its number into the entry.
  /// False if the ring has no room. Throws out_of_space, corrupt; nothing has happened.
  bool append(Ring& ring, Entry& entry);

  /// The same for a record for which has_room() has answered, and which will not be queued. Takes
  /// no memory.
  void append_cancel(Ring& ring, Entry& cancel) noexcept;

  /// With the ring's lock: whether both will be appended.
  bool has_room(const Ring& ring, const Entry& entry, const Entry& after) const;

  /// Whether a ring is so full that it should be reclaimed soon.
  bool is_filling(const Ring& ring) const;

  /// The same of all rings.
  bool is_due();

  /// What cut() takes.
  struct Cut {
    std::vector<Entry*> entries;
    std::uint64_t number;      // of the newest of all records
    std::vector<Entry*> left;  // none, with room for all
  };

  /// Takes the queues of all rings at one moment (D2), behind entries that were taken earlier.
  Cut cut(const std::vector<Entry*>& earlier);

  /// Calls take(entry) for each entry of the queues, and empties them. Takes no memory.
  template <class Take>
  void take_queued(const Take& take) noexcept {
    for (Ring& ring : rings_) {
      const std::lock_guard lock(ring.lock);
      for (Entry* entry : ring.queue) take(*entry);
      ring.queue.clear();
    }
  }

  std::uint64_t last_number() const { return last_number_.load(std::memory_order_acquire); }

  /// Frees the rings, which are empty, one commit each.
  void free_rings();

  /// Shows the records that count, in the order of their numbers, as far as they are valid, and
  /// finds the ends of the rings. On opening. Throws corrupt.
  void recover(const std::function<void(const LoggedWrite&)>& show);

  using Heads = std::array<std::uint64_t, kLogs>;

  /// Steps 4 and 5 of a reclamation: records up to header.reclaim_to mean nothing, their payloads
  /// are freed, and the heads advanced, all of it flushed. Returns the heads.
  Heads reclaim();

  /// Once they are durable: gives the room ahead of them to new records.
  void advance(const Heads& heads);

  void for_each_block(const pool::BlockVisitor& visit) const;

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
