// One operation that allocates or frees blocks and commits with one store: crash-atomic, without
// leaks.
//
//   alloc::Session session = allocator.session();
//   Offset block = session.reserve(bytes);      // 1. reserve, fill and flush new blocks
//   session.free(old_block);                    //    name what the operation replaces
//   session.commit(pm::set_word(word, block));  // 2. commit, durably
//
// commit() does four steps, which a caller does itself if the commit is more than one store:
//   session.commit_when(word, ~0ull, block);    // 2. say what commits it
//   session.log();                              //    now the commit word resolves a crash
//   pm.publish(word, block);                    // 3. commit, durably
//   session.finish();                           // 4. the marks follow, and the record is gone
//
// Where the domain makes several stores durable together (pm.commits_as_one()) no record is needed:
// commit word and marks are one commit.
//
// Rules for the caller:
//   R1. From log() until finish() or cancel() has returned, no other thread changes the commit
//       word's masked bits or the words of redo and undo: the caller holds a lock, or the words are
//       out of others' reach. Otherwise recovery might take another operation for this one, and
//       free a block that is in use.
//   R2. From commit_when() until log() the masked bits differ from `expected`.
//   R3. The commit is flushed before finish() is called, and if blocks are freed durable
//       (published): finish() marks them free, which recovery doesn't take back. Without any,
//       publishing would fence for nothing: finish() fences before it drops the record, and until
//       then recovery frees what is reserved if the commit is not in PM.
//   R4. A block that is freed is out of reach of new readers when the operation ends: if readers
//       reach it through structures in DRAM, the commit alone does not ensure this. `unlink` is for
//       that case: it runs when the commit is durable, and the grace period begins after it. By
//       free_unread() a block is used again immediately.
//   R5. A block is freed once, by one operation.
//
// A Session is the exclusive use of a lane; it belongs to one thread at a time. Hold it for one
// operation only: with as many Sessions as there are lanes, further threads wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "alloc/layout.h"
#include "pm/change.h"

namespace perdix::detail::alloc {

class Calloc;
class Claim;
class Lane;

class Session {
 public:
  Session(Session&& other) noexcept
      : calloc_(other.calloc_), lane_(std::exchange(other.lane_, nullptr)) {}
  Session& operator=(Session&&) = delete;

  /// Before log(): gives the reservations back, nothing has happened. Between log() and finish():
  /// does what recovery would do, finish() if the operation has committed and cancel() if not.
  ~Session();

  /// Takes a block of at least `bytes` (0 counts as 1) for this operation, up to kMaxBlocks of
  /// them. Aligned to 16 bytes, to 32 or 64 if block_size() is a multiple of that. Throws
  /// Errc::too_large above kMaxObject, out_of_space; nothing has happened then, and earlier
  /// reservations remain. Cost: no PM, but when a lane needs a new span.
  Offset reserve(std::size_t bytes);

  /// Like reserve(), of what is claimed: for an operation that reserve() has refused for want of
  /// space. Throws out_of_space if the claim has nothing for it.
  Offset reserve(std::size_t bytes, Claim& claim);

  /// Names a block that this operation frees, up to kMaxBlocks of them. Throws Errc::corrupt if no
  /// block is allocated there, bad_alloc; nothing has happened then.
  void free(Offset block);

  /// Frees a block that no reader can see: it never was within reach, or a grace period has
  /// passed since. It can be used again when finish() returns.
  void free_unread(Offset block);

  /// Commits the operation by a change of one word, durably, and ends it. All that this thread has
  /// flushed before, new blocks included, is durable before the change. Throws corrupt as
  /// commit_when(). Cost: as log(), a publish if blocks are freed, and finish(); a single sync in
  /// the page_cache domain.
  void commit(const pm::Change& change) {
    commit(change, [] {});
  }
  /// Calls unlink(), which throws nothing, when the change is durable and before the grace period
  /// of what is freed begins (R4). So do the others below that take one.
  template <class Unlink>
  void commit(const pm::Change& change, Unlink unlink) {
    make_durable(change);
    unlink();
    end();
  }

  /// commit() with a call of then(), which throws nothing, when the change is durable. What then()
  /// flushes is durable when this returns: so stores that must come after the commit cost no fence
  /// of their own. Only where pm.commits_as_one() is false.
  template <class Then>
  void commit_then(const pm::Change& change, Then then) {
    make_logged(change);
    then();
    drop_record();
    end();
  }

  /// commit() by several changes, all of them durable or none. Only where pm.commits_as_one().
  /// Never throws.
  void commit_as_one(std::span<const pm::Change> changes) {
    commit_as_one(changes, [] {});
  }
  template <class Unlink>
  void commit_as_one(std::span<const pm::Change> changes, Unlink unlink) {
    make_durable_as_one(changes);
    unlink();
    end();
  }

  /// Whether finish() or cancel() is still to come.
  bool logged() const noexcept;

  /// The operation is committed if and only if (word & mask) == expected; `word` lies in the pool.
  /// Without this call it is committed when log() returns, and the caller makes its stores between
  /// log() and finish() (flushed; finish() fences before it drops the record): see redo(). Throws
  /// corrupt if the masked bits are as expected already (R2): then the pool is damaged, since the
  /// word differs from the copy of it that the caller has in DRAM.
  void commit_when(const std::uint64_t& word, std::uint64_t mask, std::uint64_t expected);

  /// A store that belongs to the operation: recovery makes it if the operation is committed. The
  /// caller makes it too.
  void redo(std::uint64_t& word, std::uint64_t value);

  /// A store that takes a change back: recovery makes it if the operation is not committed, and so
  /// does cancel().
  void undo(std::uint64_t& word, std::uint64_t value);

  /// Writes the record. Makes all that this thread has flushed before durable, also the contents of
  /// new blocks. Cost: one or two PM lines, one fence; two fences without commit_when().
  void log();

  /// After the commit: marks the blocks in PM, then drops the record, durably. All that this thread
  /// has flushed is durable before the record is gone. Cost: a line per block, most of them hot,
  /// and the record's; two fences.
  void finish() {
    finish([] {});
  }
  template <class Unlink>
  void finish(Unlink unlink) {
    end_record();
    unlink();
    end();
  }

  /// After log(), in place of the commit: takes everything back. Only after commit_when(): without
  /// it log() was the commit. Cost: a line and a fence; one more of each with undo().
  void cancel();

 private:
  friend class Calloc;
  Session(Calloc& calloc, Lane& lane) noexcept : calloc_(&calloc), lane_(&lane) {}

  Offset reserve_small(std::uint64_t bytes);
  Offset reserve_object(std::uint64_t bytes);
  bool committed() const;
  void make_durable(const pm::Change& change);
  void make_logged(const pm::Change& change);
  void make_durable_as_one(std::span<const pm::Change> changes);
  void end_record();
  void make_marks_durable();
  void drop_record();
  void end();
  void mark();
  void add_marks(pm::Changes& changes) const;
  void remember();
  void put_back_reserved() noexcept;
  void reset() noexcept;

  Calloc* calloc_;
  Lane* lane_;  // null once moved from
};

}  // namespace perdix::detail::alloc
