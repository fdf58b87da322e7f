// A stripe: one of the tails at which writers append.
//
// Its lock is held from the choice of a position until the record there is durable, so there are no
// holes: behind the first position without a valid record there is none that anybody was told of.
// Whoever reads a tail (acquire) sees the heads of all chains as of the records before it, or later
// ones.
//
// A Lockable: what is said to need the lock is called by its holder. Otherwise thread-safe. Lock
// order: the caller's lock of the chain, its Session, one stripe; stripes by number, but one that
// is only tried (Log::end).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "alloc/session.h"
#include "pool/pool_core.h"
#include "util/spin_lock.h"
#include "util/stripe.h"
#include "wal/chain.h"
#include "wal/marks.h"
#include "wal/segments.h"

namespace perdix::wal {

class alignas(util::kCacheLine) Stripe {
 public:
  /// For as many ENDs as there can be chains in one segment, so that cleaning goes on when nobody
  /// else is admitted, and a segment can be reclaimed.
  static constexpr std::uint64_t kEndsHeadroom = kSegmentSize;
  /// What admit() makes sure of: the same, and room for operations that were admitted before.
  static constexpr std::uint64_t kHeadroom = kEndsHeadroom + kSegmentSize / 4;
  /// Segments that a stripe may have whatever its limit is: the tail's, and the headroom.
  static constexpr std::uint64_t kLeast = 3;

  /// Of a log that was made before. Throws Errc::corrupt.
  Stripe(pool::PoolCore& pool, StripeLayout& layout, std::uint64_t seed, unsigned number,
         const Marks& marks);

  /// Completes the opening. `tail`: behind the last valid record. Throws Errc::corrupt.
  void open(Position tail);

  void lock() noexcept { lock_.lock(); }
  bool try_lock() noexcept { return lock_.try_lock(); }
  void unlock() noexcept { lock_.unlock(); }

  // --- Writers -----------------------------------------------------------------------------------

  bool has_headroom(std::uint64_t bytes) const noexcept {
    const Position next = tail();  // before the end, so that it is not behind it
    return segments_.end() - next >= bytes;
  }

  /// Whether there is headroom; allocates it if less than `limit` bytes are used. Throws
  /// Errc::out_of_space. Usually two loads.
  bool admit(std::uint64_t limit) {
    return has_headroom(kHeadroom) ||
           segments_.grow([this] { return has_headroom(kHeadroom); },
                          [&] { return used() < limit || few_segments(); });
  }

  /// Makes room for ENDs, if the pool has space. Whatever the limit: they will free as much.
  void make_room_for_ends();

  /// Appends a record that is durable when this returns. Throws Errc::out_of_space, nothing
  /// changed, where admit() was not asked. Under the lock.
  void append(Chain& chain, Type type, Word key, Word value);

  /// The same, and the record is what commits the session. The caller calls finish(). Under the
  /// lock.
  void append(Chain& chain, Type type, Word key, Word value, alloc::Session& session);

  /// Appends an END, durably, then the chain is empty. Under the lock. Then the chain is removed
  /// from the stripe that it began in.
  void end(Chain& chain);

  /// An empty chain that began here holds nothing back any more. Under the lock.
  void remove(Chain& chain);

  // --- Maintenance -------------------------------------------------------------------------------

  Position tail() const noexcept { return tail_.load(std::memory_order_acquire); }

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
  bool few_segments() const noexcept { return segments_.count() < kLeast; }

  Record& place(Position position);
  template <class Commit>
  Position write(const Chain& chain, Type type, Word key, Word value, Commit commit);
  void joined(Chain& chain, Position position) noexcept;
  void passed(Position position) noexcept;
  void note_oldest() noexcept;

  const pm::Persister& pm_;
  const std::uint64_t seed_;
  mutable util::SpinLock lock_;
  std::atomic<Generation> oldest_generation_{kNoGeneration};  // of chains_; changed under lock_
  std::atomic<Position> tail_{0};                             // changed under lock_
  std::byte* segment_ = nullptr;                              // the tail's; guarded by lock_
  ChainList chains_;  // those that began here; guarded by lock_
  std::atomic<Position> checkpointed_{0};
  const Marks& marks_;
  pool::PoolCore& pool_;
  Segments segments_;
};

}  // namespace perdix::wal
