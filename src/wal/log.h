// The structured write-ahead log of an index (sptree paper, §4.7): changes that a write buffer in
// DRAM holds survive a crash as records in PM, and can be looked up right after a restart.
//
// The records of one buffer form a chain, linked backwards; an END closes it once the buffer's
// pairs have been merged into the index. Chains belong to owners (for SpTree: leaves). There are
// several stripes, each with a tail. A thread appends at one of them, whichever chain it is for, so
// that a tail stays in the cache of its processor; it takes the next one at the end of a segment,
// so that all are used, and when it finds its own taken. How it is put together:
//
//   Stripe      a tail: appends, the order of chains by age        stripe.h, chain.h
//   Cursors     at which stripe a thread appends                   cursors.h
//   Marks       what a chain of an age holds back of each stripe   marks.h, generations.h
//   Segments    a stripe's ring of 64 KiB blocks                   segments.h
//   HeadTable   a checkpoint: the newest record of each chain      head_table.h
//   Survivors   what is found after a restart                      survivors.h, adoptions.h
//
// Life of a log: create(), once. Open it (the constructor); until resumed() is called, surviving()
// and follow() find the chains of before the restart, while writers may append already. Maintenance
// is done by one thread at a time, at any time:
//
//   while (Chain* chain = log.crowded() ? log.oldest() : nullptr) merge its pairs, log.end(*chain);
//   log.reclaim();
//   if (log.checkpoint_due()) log.checkpoint();
//   log.reclaim();
//
// look_due() says when: once per a number of records. After such a round in which no thread
// appended, admit() returns true. Where the pool is full, shrink() gives back what the log can do
// without.
//
// Room: a chain's first record is appended only where there is room for its END, too, which is kept
// for it from then on (W6). So end() can't fail, and is called behind a commit. A chain may be
// promised room for some more records, when it begins and later: append_surely() finds it whatever
// happens.
//
// Errors: append() throws out_of_space, and then nothing has changed. What is read of a damaged
// file gives Errc::corrupt or wrong records, never a fault.
//
// Thread-safe, within these rules:
//   R1. A chain is changed (append, end, assign, adopt) by one thread at a time: the lock that
//       guards the buffer is held. It may be held together with a Session.
//   R2. admit() is called before append(), by the thread that appends, without a Session. Without
//       it, or if all concurrent appends together exceed Stripe::kHeadroom records, promises
//       included, append() may throw.
//   R3. An owner's records are in one Chain at a time; a Chain gets another owner only by assign()
//       or adopt(), while it is empty.
//   R4. surviving() and follow() run in an epoch::Guard, or not while resumed() does.
//   R5. What is merged is durable before end() is called.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include <perdix/types.h>

#include "alloc/session.h"
#include "pm/probe.h"
#include "pool/pool_core.h"
#include "wal/adoptions.h"
#include "wal/chain.h"
#include "wal/cursors.h"
#include "wal/generations.h"
#include "wal/layout.h"
#include "wal/marks.h"
#include "wal/record.h"
#include "wal/stripe.h"
#include "wal/survivors.h"

namespace perdix::detail::wal {

/// A number that no other log's seed is, as far as chance allows.
std::uint64_t draw_seed();

class Log {
 public:
  struct Limits {
    /// Of records, live or not yet reclaimed, and of room that chains are promised; each stripe an
    /// eighth of it. Taken for at most 320 MiB. Not counted: segments that are allocated ahead, at
    /// most two per stripe.
    std::uint64_t bytes;

    // What follows is for tests, which can't fill a log: all of it happens sooner with less.

    /// `bytes` is taken for at least as many.
    std::uint64_t min_bytes = pm::limit("wal: bytes of records", std::uint64_t{2} << 20);
    /// How much a restart reads at most, if checkpoints are taken when due and the head table is
    /// small: 4 MiB, which take some ten milliseconds.
    std::uint64_t suffix = pm::limit("wal: bytes that a restart reads", std::uint64_t{4} << 20);
    /// Records that a generation of chains has at least.
    std::uint64_t generation =
        pm::limit("wal: records of a generation", kSegmentSize / sizeof(Record));
    /// Records after which a look at the log is due; a power of two, at most a segment's.
    unsigned records_per_look = static_cast<unsigned>(pm::limit("wal: records per look", 32));
  };

  /// Makes an empty log in a block that the session reserves, flushed; the session's log() makes it
  /// durable, and the caller's commit links it. Returns the block. `seed` must be new: records left
  /// from a log with the same seed would be taken for records of this one.
  static pm::Offset create(alloc::Session& session, pool::PoolCore& pool,
                           std::uint64_t seed = draw_seed());

  /// Opens a log. Writes nothing to PM. Throws Errc::corrupt. Cost: the records since the last
  /// checkpoint, and a few lines per segment.
  Log(pool::PoolCore& pool, pm::Offset header, Limits limits);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // --- Writers -----------------------------------------------------------------------------------

  /// Makes sure that an operation of the calling thread can append. Sometimes allocates a segment
  /// with a Session, so the caller must hold none. False if all stripes are at their limit:
  /// maintenance must run first (before resumed(): the surviving chains must be dealt with).
  /// Usually four loads. Throws Errc::out_of_space if the pool has no space for a segment: then
  /// maintenance may help too, followed by Calloc::reclaim().
  bool admit() {
    return stripes_[cursors_.stripe()].has_room(Stripe::kHeadroom) || admit_anywhere();
  }

  /// Appends a record to the chain of chain.owner; durable when this returns. Cost: a line, a flush
  /// and a fence; the record of a stripe's first place in a segment also reads a word of the ring.
  /// Throws out_of_space, see R2.
  void append(Chain& chain, Type type, Word key, Word value) {
    LockedTail tail(*this, lock_tail(Stripe::need_of(chain)));
    tail->append(chain, type, key, value);
  }

  /// Like append() without a session. The record commits the session's operation: its reservations
  /// and frees count if and only if the record does. The session is finished when this returns.
  void append(Chain& chain, Type type, Word key, Word value, alloc::Session& session) {
    {
      LockedTail tail(*this, lock_tail(Stripe::need_of(chain)));
      tail->append(chain, type, key, value, session);
    }
    if (session.logged()) session.finish();  // without the stripe's lock
  }

  /// Append a record to a chain that has some. Never throw out_of_space if chain.sure is not 0:
  /// then the record uses the promised room, unless there is other room.
  void append_surely(Chain& chain, Type type, Word key, Word value) {
    LockedTail tail(*this, lock_tail_surely(chain));
    tail->append(chain, type, key, value);
  }
  void append_surely(Chain& chain, Type type, Word key, Word value, alloc::Session& session) {
    {
      LockedTail tail(*this, lock_tail_surely(chain));
      tail->append(chain, type, key, value, session);
    }
    if (session.logged()) session.finish();  // without the stripe's lock
  }

  /// Promises a chain that has records room for some more of them, besides what it was promised.
  /// The calling thread has no Session. False, and nothing has changed, if the stripe that the
  /// chain began in has no room for them. Cost: that stripe's lock.
  bool promise(Chain& chain, std::uint16_t records);

  /// Appends an END, durably; then the chain is empty. A chain without records is left alone. There
  /// is always room for it.
  void end(Chain& chain) noexcept;

  /// Makes the calling thread append at this stripe from now on. For tests, which can't wait until
  /// it comes there by itself.
  void go_to(unsigned stripe) noexcept { cursors_.go_to(stripe); }

  /// Makes a chain known to checkpoints; once for each Chain, before its first record.
  void add(Chain& chain) noexcept;

  // --- Maintenance: any thread, no locks and no Session held, in no epoch::Guard -----------------

  /// Whether the calling thread, or one whose slot it shares, has appended enough records since its
  /// last look that it should maintain the log; if so, restarts the count. Usually one load.
  bool look_due() noexcept { return cursors_.take_look(); }

  /// Called when a record was not appended for lack of room, so that a look becomes due where no
  /// record is appended.
  void note_refusal() noexcept { cursors_.note_refusal(); }

  /// Whether open chains keep more than half of a stripe's limit from being reclaimed, or are
  /// promised more than a quarter of the whole limit. 32 loads.
  bool crowded() const noexcept;

  /// A chain that is as old as any; nullptr if no chain has records. It may change before the
  /// caller has its lock.
  Chain* oldest() const;

  /// Whether a restart would have to read much, compared with the head table that a checkpoint
  /// writes, or reclamation needs a newer checkpoint. 16 loads.
  bool suffix_is_long() const noexcept;

  /// Whether a checkpoint should be taken, and can be.
  bool checkpoint_due() const noexcept { return !resuming() && suffix_is_long(); }

  /// Writes a head table and frees the one before. Nothing happens before resumed(), or if nothing
  /// was appended since the last one. Cost: reads all known chains; writes 24 bytes for each
  /// open one. Throws Errc::out_of_space, too_large; neither if few chains are open.
  void checkpoint();

  /// Frees the segments that neither an open chain nor the last checkpoint needs, and those ahead
  /// of the tails but for a few. Nothing happens before resumed().
  void reclaim();

  /// Frees all segments that can be freed, those ahead of the tails included: all there are if no
  /// chain is open. Takes a checkpoint for that, unless the pool has no space for one. Nothing
  /// happens before resumed().
  void shrink();

  // --- After a restart: until resumed() (R4) -----------------------------------------------------

  /// The newest record of the owner's chain if it had no END when the log was opened, else 0; 0
  /// once resumed. Cost: a look into DRAM, and usually two lines of PM. Throws Errc::corrupt.
  Position surviving(Owner owner) const;

  /// Calls visit(owner, head) for each chain that has survived, adopted or not; for none once
  /// resumed. Cost: in proportion to their number.
  template <class F>
  void for_each_surviving(F visit) const {
    const Survivors* survivors = survivors_.load(std::memory_order_acquire);
    if (survivors != nullptr) survivors->for_each(visit);
  }

  /// Calls f(type, key, value, position) for the records of a chain, from the newest to the oldest.
  /// If f returns bool, false ends it. Throws Errc::corrupt. If the chain is closed and reclaimed
  /// during the call, which can be only after resumed(), it ends early.
  template <class F>
  void follow(Owner owner, Position head, F f) const {
    if (head == 0) return;
    // As many records as there can be: a damaged chain might lead back to itself.
    for (std::uint64_t left = kStripes * kRingSize / sizeof(Record); left > 0; --left) {
      const std::optional<Content> record = at(owner, head);
      if (!record || !show(f, *record, head) || record->first) return;
      head = previous(*record);
    }
  }

  /// Brings chains into the processor's cache, all of them in parallel: each one alone is a
  /// sequence of dependent memory accesses. `heads`: what surviving() has returned, or 0;
  /// overwritten.
  void prefetch(std::span<Position> heads) const noexcept;

  /// The data of a surviving chain before it is adopted.
  struct Adoption {
    Owner owner;
    Position head;
    Position first;
    Generation generation;
    std::uint16_t sure;
  };

  /// Takes what adopt() needs, which then can't fail: the memory, and the room for the END and for
  /// `sure` more records, which the chain was promised before the restart. `head` is what
  /// surviving() has returned. The caller passes the result to adopt() or cancel_adoption(). Throws
  /// bad_alloc, and corrupt where there is no such chain or no such room. Cost: reads the chain.
  Adoption prepare_adoption(Owner owner, Position head, std::uint16_t sure = 0);

  /// Gives back what prepare_adoption() has taken.
  void cancel_adoption(const Adoption& adoption) noexcept;

  /// Makes `chain` continue a surviving chain. It must be empty, and known (add()).
  void adopt(Chain& chain, const Adoption& adoption) noexcept;

  /// prepare_adoption() and adopt() in one. Throws as the former does.
  void adopt(Chain& chain, Owner owner, Position head) {
    adopt(chain, prepare_adoption(owner, head));
  }

  /// Called once, when every surviving chain has been adopted (or adopted and ended): from now on
  /// there are checkpoints and reclamation.
  void resumed();

  bool resuming() const noexcept { return survivors_.load(std::memory_order_acquire) != nullptr; }

  // --- Facts -------------------------------------------------------------------------------------

  /// Bytes of records that are not reclaimed.
  std::uint64_t bytes_used() const noexcept;

  /// Segments that the log has, those ahead of the tails included.
  std::uint64_t segments() const noexcept;

  /// Bytes of records that a restart would read now.
  std::uint64_t suffix_bytes() const noexcept;

  /// Bytes of the log's blocks. Cost: reads the ring words.
  std::uint64_t pm_bytes() const;

  /// Records that were ever appended, ENDs included, and places that shrink() left out.
  std::uint64_t appended() const noexcept { return generations_.appended(); }

  /// Calls visit(offset) for each block of the log. No maintenance may run.
  void for_each_block(const std::function<void(pm::Offset)>& visit) const;

  /// Verifies every invariant of layout.h, and that DRAM agrees with PM. Nothing else may run. Adds
  /// to `report`, but for the number of blocks.
  void check(CheckReport& report) const;

 private:
  /// A locked stripe at which the calling thread appends a record. The destructor unlocks it.
  class LockedTail {
   public:
    LockedTail(Log& log, Stripe& stripe) : log_(log), stripe_(stripe) {}
    LockedTail(const LockedTail&) = delete;
    LockedTail& operator=(const LockedTail&) = delete;
    ~LockedTail() {
      const std::uint64_t place = place_in_segment(stripe_.tail());
      stripe_.unlock();
      if (place % log_.bytes_per_look_ == 0) [[unlikely]]
        log_.go_on(place == 0);
    }
    Stripe* operator->() const { return &stripe_; }
    bool is(const Stripe& stripe) const { return &stripe_ == &stripe; }

   private:
    Log& log_;
    Stripe& stripe_;
  };

  /// The log at one moment.
  struct Cut {
    Tails tails;
    std::uint64_t open;  ///< chains
  };

  /// Locks a stripe with room for this many records and returns it. If there is none, returns
  /// nullptr and has locked none.
  Stripe* find_tail(std::uint64_t records) noexcept {
    Stripe& stripe = stripes_[cursors_.stripe()];
    if (stripe.try_lock()) [[likely]] {
      if (stripe.has_room(records)) [[likely]]
        return &stripe;
      stripe.unlock();
    }
    return find_another_tail(records);
  }

  Stripe& lock_tail(std::uint64_t records) {
    Stripe* const stripe = find_tail(records);
    if (stripe == nullptr) [[unlikely]]
      throw_full();
    return *stripe;
  }

  /// The stripe of a chain's first record, which keeps the room for the chain's END (W6).
  Stripe& home_of(const Chain& chain) noexcept {
    return stripes_[stripe_of_position(chain.first.load(std::memory_order_relaxed))];
  }

  Stripe& lock_tail_surely(Chain& chain);
  Stripe* find_another_tail(std::uint64_t records) noexcept;
  [[noreturn]] void throw_full() const;
  void go_on(bool segment_ended) noexcept;
  bool admit_anywhere();

  Survivors::Rings rings() const noexcept;

  std::optional<Content> at(Owner owner, Position position) const;
  Position previous(const Content& record) const noexcept {
    return position_of(record.link, stripes_[stripe_of_link(record.link)].segments().start());
  }

  template <class F>
  static bool show(F& f, const Content& record, Position at) {
    using Result = std::invoke_result_t<F&, Type, Word, Word, Position>;
    if constexpr (std::is_same_v<Result, bool>) {
      return f(record.type, record.key, record.value, at);
    } else {
      f(record.type, record.key, record.value, at);
      return true;
    }
  }

  void require_distinct_blocks() const;
  Cut cut() noexcept;
  void publish_table(const Cut& cut);
  void free_table(alloc::Session& session) const;
  bool skip_segments();
  void add_open_chains(const Tails& tails, TableWriter& table) const;
  void check_heads(const Survivors& found, CheckReport& report) const;

  pool::PoolCore& pool_;
  Header& header_;
  const std::uint64_t seed_;
  const std::uint64_t stripe_limit_;           // bytes
  const std::uint64_t max_suffix_;             // bytes
  const std::uint64_t bytes_per_look_;         // of a stripe
  std::atomic<std::uint64_t> table_bytes_{0};  // of the last table that this opening wrote
  Cursors cursors_;
  Generations generations_;
  std::deque<Stripe> stripes_;                        // a stripe neither moves nor is copied
  std::atomic<Chain*> known_{nullptr};                // the chain that was added last
  std::mutex maintenance_;                            // guards checkpoints
  std::atomic<const Survivors*> survivors_{nullptr};  // owned; null once resumed
  Adoptions adoptions_;
};

/// Calls visit(word, bytes) for each word that leads to a block of a log, which has room for so
/// many bytes at least: the word of its header, which is not 0, last. `visit` may free the block
/// and clear the word: after a crash in the middle of that it can be called again, and is the only
/// thing that may be done with the log. Throws Errc::corrupt.
void for_each_owner(pool::PoolCore& pool, std::uint64_t& header_word,
                    const std::function<void(std::uint64_t& word, std::uint64_t bytes)>& visit);

}  // namespace perdix::detail::wal
