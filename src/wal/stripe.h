// A stripe: one of the tails at which writers append.
//
// Its lock is held from the choice of a position until the record there is durable, so there are no
// holes: behind the first position without a valid record there is no record that a caller was told
// of. A thread that reads a tail (acquire) sees the heads of all chains as of the records before
// it, or later ones.
//
// A Lockable. Calls that are documented to need the lock are made by its holder; the others are
// thread-safe. Lock order: the caller's lock of the chain, its Session, one stripe; stripes by
// number, but one that is only tried (Log::end).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "alloc/session.h"
#include "pm/probe.h"
#include "pool/pool_core.h"
#include "util/spin_lock.h"
#include "util/stripe.h"
#include "wal/chain.h"
#include "wal/marks.h"
#include "wal/segments.h"

namespace perdix::detail::wal {

class alignas(util::kCacheLine) Stripe {
 public:
  /// Records for which admit() makes sure that there is room: those of all operations that were
  /// admitted and have not appended yet.
  static constexpr std::uint64_t kHeadroom = kSegmentSize / sizeof(Record) / 2;
  /// Segments that a stripe may have whatever its limit is: the tail's, and the headroom.
  static constexpr std::uint64_t kMinSegments = 2;

  /// Of a log that was made before. Throws Errc::corrupt.
  Stripe(pool::PoolCore& pool, StripeLayout& layout, std::uint64_t seed, unsigned number,
         const Marks& marks);

  /// Completes the opening. `tail`: behind the last valid record. Throws Errc::corrupt.
  void open(Position tail);

  void lock() noexcept { lock_.lock(); }
  bool try_lock() noexcept { return lock_.try_lock(); }
  void unlock() noexcept { lock_.unlock(); }

  // --- Writers -----------------------------------------------------------------------------------

  /// Whether there is room for this many records besides those that are promised room (W6). Exact
  /// under the lock. Three loads.
  bool has_room(std::uint64_t records) const noexcept {
    const Position next = tail();  // before the end, so that it is not behind it
    const std::uint64_t promised = promised_.load(std::memory_order_relaxed);
    return segments_.room_behind(next) >= (promised + records) * sizeof(Record);
  }

  /// Whether there is headroom; allocates it if less than `limit` bytes are used or promised.
  /// Throws Errc::out_of_space. Usually three loads.
  bool admit(std::uint64_t limit) {
    return has_room(kHeadroom) || segments_.grow([this] { return has_room(kHeadroom); },
                                                 [&] {
                                                   // Promises count from the beginning. So each
                                                   // chain that ends makes room, though its END
                                                   // takes some.
                                                   const std::uint64_t all =
                                                       used() + promised() * sizeof(Record);
                                                   return all < limit || few_segments();
                                                 });
  }

  /// The room that a chain needs for a record: its first record also needs room for the END, and
  /// for the further records that are promised to the chain.
  static std::uint64_t need_of(const Chain& chain) noexcept {
    const bool begins = chain.head.load(std::memory_order_relaxed) == 0;
    return 1 + (begins ? promise_of(chain) : 0);
  }

  /// Appends a record that is durable when this returns. There is room: has_room() says so, or
  /// spend_sure() has been called. Under the lock.
  void append(Chain& chain, Type type, Word key, Word value);

  /// Like append() without a session; the record commits the session. The caller calls finish().
  /// Under the lock.
  void append(Chain& chain, Type type, Word key, Word value, alloc::Session& session);

  /// The next record of the chain, which began here, takes room that it was promised. Under the
  /// lock.
  void spend_sure(Chain& chain) noexcept;

  /// Promises the chain, which began here, room for this many more records. False, and nothing has
  /// changed, if there is none. Under the lock.
  bool promise_more(Chain& chain, std::uint16_t records) noexcept;

  /// Appends an END, durably, then the chain is empty. It takes room that nothing was promised, or,
  /// where the chain began, its own. Under the lock. Then the chain is removed from the stripe that
  /// it began in.
  void end(Chain& chain) noexcept;

  /// An empty chain that began here holds nothing back any more, and needs no room. Under the lock.
  void remove(Chain& chain) noexcept;

  // --- After a restart: until resumed() ----------------------------------------------------------

  /// Takes room for this many records out of the room at the opening, all of which is kept for the
  /// chains that survive. False if there is less: then the file is damaged (W6).
  bool claim(std::uint64_t records) noexcept;
  void unclaim(std::uint64_t records) noexcept;

  /// No other chain survives: the rest of that room may be used.
  void resumed() noexcept;

  // --- Maintenance -------------------------------------------------------------------------------

  Position tail() const noexcept { return tail_.load(std::memory_order_acquire); }

  /// With nothing in it: goes on in the next segment, which need not be there, so that all that
  /// there is can be freed once a checkpoint has this tail. Nothing may be appended before that is
  /// durable. Under the lock.
  void skip_to_next_segment() noexcept;

  /// Frees segments behind the tail's that nothing was promised, but for `spare` of them.
  void free_ahead(std::uint64_t spare = 0);

  /// Bytes from the start to the tail.
  std::uint64_t used() const noexcept {
    const Position start = segments_.start();  // before the tail, so that it is not behind it
    return tail() - start;
  }

  /// Bytes that a scan would read now.
  std::uint64_t suffix() const noexcept {
    const Position begin = checkpointed();
    return tail() - begin;
  }

  /// Of the chains that began here: the generation of the oldest; kNoGeneration without one.
  Generation oldest_generation() const noexcept {
    return oldest_generation_.load(std::memory_order_acquire);
  }

  /// The oldest chain that began here, nullptr if there is none.
  Chain* oldest() const;

  /// Chains that began here and are open. Under the lock.
  std::uint64_t open_chains() const noexcept { return chains_.size(); }

  /// Whether there is room for all that was promised, which is at least this many records (W6).
  bool has_promised_room(std::uint64_t records) const noexcept {
    return has_room(0) && promised_.load(std::memory_order_relaxed) >= records;
  }

  /// Records that chains are promised room for, as far as they are known. Exact under the lock.
  std::uint64_t promised() const noexcept {
    // acquire: a thread that sees the promises reduced by what was never claimed sees that as 0.
    const std::uint64_t all = promised_.load(std::memory_order_acquire);
    return all - unclaimed_.load(std::memory_order_relaxed);
  }

  /// The tail of the head table: nothing at or behind it is reclaimed.
  Position checkpointed() const noexcept { return checkpointed_.load(std::memory_order_acquire); }
  void set_checkpointed(Position tail) noexcept {
    checkpointed_.store(tail, std::memory_order_release);
  }

  /// Frees the segments that no recovery needs: neither the checkpoint's nor chains do, which have
  /// no record before `bound`.
  void reclaim(Position bound) { segments_.free_before(std::min(checkpointed(), bound)); }

  /// Takes a chain that was adopted with that first record into the order by age, before all that
  /// are in it; unless it has ended since.
  void list_oldest(Chain& chain, Position first);

  const Segments& segments() const noexcept { return segments_; }

 private:
  bool few_segments() const noexcept { return segments_.count() < kMinSegments; }
  static std::uint64_t promise_of(const Chain& chain) noexcept { return 1u + chain.sure; }
  void promise(std::uint64_t records) noexcept;
  void take_back(std::uint64_t records) noexcept;

  /// Constant but in instrumented builds, where an experiment does without the records to see what
  /// they cost. Nothing of such a log survives, and no session has a record of it as its commit.
  bool writes_records() const noexcept {
    if constexpr (pm::kInstrumented) return writes_records_;
    return true;
  }

  Record& place(Position position) noexcept;
  template <class Commit>
  Position write(const Chain& chain, Type type, Word key, Word value, Commit commit);
  void joined(Chain& chain, Position position) noexcept;
  void passed(Position position) noexcept;
  void note_oldest() noexcept;

  const pm::Persister& pm_;
  const std::uint64_t seed_;
  const bool writes_records_ = pm::limit("wal: records are written", 1) != 0;
  mutable util::SpinLock lock_;
  std::atomic<Generation> oldest_generation_{kNoGeneration};  // of chains_; changed under lock_
  std::atomic<Position> tail_{0};                             // changed under lock_
  std::atomic<std::uint64_t> promised_{0};                    // W6, records; changed under lock_
  std::atomic<std::uint64_t> unclaimed_{0};                   // part of it; changed under lock_
  std::byte* segment_ = nullptr;                              // the tail's; guarded by lock_
  ChainList chains_;  // those that began here; guarded by lock_
  std::atomic<Position> checkpointed_{0};
  const Marks& marks_;
  Segments segments_;
};

}  // namespace perdix::detail::wal
