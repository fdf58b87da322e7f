// UNO logging (docs/durability/tips.md, D4 and D5): the undo log and the memory log of one index,
// and the reclamation of both.
//
//   {
//     Uno::Scope scope(uno);     // makes room in both logs, and in DRAM
//     plugin.put(...);           // calls allocate(), free(), undo_log_add()
//   }
//   if (uno.is_due(n)) { uno.flush(to); ...; uno.start_epoch(); }
//
// Thread-safe: operations of several threads may log concurrently. flush() and the calls after it
// require that all of them have ended.
//
// A plug-in can't take back half of an operation, so none of its stores may run out of memory. The
// room of a Scope is more than any operation of the plug-ins of this release needs. An operation
// that needs more gets it if there is any. Otherwise the index is broken until it is opened again,
// which rolls it back.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "alloc/claim.h"
#include "alloc/session.h"
#include "index/common/owned.h"
#include "index/common/problems.h"
#include "index/tips/damage.h"
#include "index/tips/fresh_blocks.h"
#include "index/tips/layout.h"
#include "index/tips/line_set.h"
#include "index/tips/need.h"
#include "pm/access.h"
#include "pm/persist.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

class Uno {
 public:
  // What an operation finds room for. An erase in a B+-tree of eight levels changes three nodes of
  // ten lines in each.
  static constexpr unsigned kUndoRoom = 320;   ///< records
  static constexpr unsigned kMemoryRoom = 32;  ///< entries

  /// Checks the blocks of both logs. Throws corrupt. `claim` is what operations may take their
  /// needs from.
  Uno(pool::PoolCore& pool, Header& header, alloc::Claim& claim);
  Uno(const Uno&) = delete;
  Uno& operator=(const Uno&) = delete;

  /// An operation of a plug-in on this thread. In a full pool it gets the blocks of `need` from the
  /// claim, and no others: they are for other puts. Throws out_of_space if the logs get no room,
  /// and bad_alloc.
  class Scope {
   public:
    explicit Scope(Uno& uno, const Need& need = {});
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

    /// Throws invalid_argument if this thread is in no operation.
    static Scope& current();
    Uno& uno() { return uno_; }

    /// The exception of a call from a plug-in whose code no exception may pass through.
    void set_failure(std::exception_ptr failure) { failure_ = std::move(failure); }
    const std::exception_ptr& failure() const { return failure_; }

   private:
    friend class Uno;
    struct Touched {
      std::byte* at;
      std::vector<std::byte> reported;
    };

    void touch(void* p, std::size_t bytes);
    void report();

    Uno& uno_;
    Need need_;  // what is left of it
    Scope* outer_;
    std::exception_ptr failure_;
    std::vector<Touched> touched_;  // empty but in the instrumented build
  };

  /// While it exists one thread uses the logs, and its operations lock nothing.
  class Alone {
   public:
    explicit Alone(Uno& uno) : uno_(uno) { uno_.alone_ = true; }
    ~Alone() { uno_.alone_ = false; }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    Uno& uno_;
  };

  // In an operation of this thread.
  void* allocate(std::size_t bytes);
  void free(void* block);
  void add(const void* p, std::size_t bytes);

  /// Whether an operation could not go on between two stores.
  bool is_broken() const { return broken_.load(std::memory_order_relaxed); }

  /// After a look at the index: throws if half of a change may have been there, out_of_space or
  /// invalid_argument.
  void require_whole() const {
    if (is_broken()) [[unlikely]]
      throw_broken(pool_, foreign_memory_.load(std::memory_order_relaxed));
  }

  /// Whether nothing was logged since the epoch began.
  bool is_empty() const;

  /// Whether an operation finds its room as the logs are.
  bool has_room() const;

  /// Whether the logs should be reclaimed after this operation. A reclamation costs as much as some
  /// hundred operations, and makes durable once what several of them have changed.
  bool is_due(unsigned undo_records) const;

  /// Step 1 and 2 of a reclamation: all changes become durable, and with them that records up to
  /// `reclaim_to` mean nothing.
  void flush(std::uint64_t reclaim_to);

  /// Step 3: frees what plug-ins gave back. After flush(), also one of before a crash.
  void free_freed();

  /// Step 5 and 6: clears the memory log and starts the next epoch.
  void start_epoch();

  /// After a crash, if flush() had not ended: restores the index to its state when the epoch began.
  /// Throws corrupt, out_of_space.
  void roll_back();

  /// After start_epoch(): leaves at most this many blocks to each log. One commit for each other
  /// block.
  void shrink(std::size_t kept);

  bool is_flushed() const { return pm::load(header_.flushed) == pm::load(header_.epoch); }

  /// T4.
  void check(Problems& problems) const;

  /// Tells of all blocks but the first one of each log, which the header leads to.
  void walk(Owned& owned) const;

  std::uint64_t dram_bytes() const;

  std::uint64_t undo_records() const { return written_; }
  std::uint64_t undo_saved() const { return saved_; }

 private:
  struct Line {
    pm::Offset offset;
    std::uint64_t size;
  };

  const pm::Persister& pm() const { return pool_.pm(); }
  pm::Offset take_block(alloc::Session& session, std::size_t bytes);
  void require_inside(const void* p, std::size_t bytes);
  std::vector<pm::Offset> blocks_of(pm::Offset first, std::uint64_t bytes) const;
  void extend(std::vector<pm::Offset>& blocks, std::uint64_t bytes);
  std::unique_lock<std::mutex> lock();
  void make_room(std::uint64_t operations);
  void log_lines(pm::Offset begin, pm::Offset end);
  template <class Step>
  void or_break(Step step);
  UndoRecord& undo_at(std::uint64_t place) const;
  std::uint64_t& memory_at(std::uint64_t place) const;
  std::uint64_t undo_room() const { return undo_.size() * kUndoPerBlock; }
  std::uint64_t memory_room() const { return memory_.size() * kMemoryPerBlock; }
  std::uint64_t check_of(const UndoRecord& record, std::uint64_t place) const;
  bool is_sound(const UndoRecord& record) const;
  Line line_at(pm::Offset offset, pm::Offset block) const;
  pm::Offset end_of_fresh(pm::Offset offset, pm::Offset block);
  bool write_undo(Line line);
  template <class Entry>
  void for_each_entry(Entry entry) const;

  pool::PoolCore& pool_;
  Header& header_;
  alloc::Claim& claim_;
  bool alone_ = false;  // changes while there is no operation

  mutable std::mutex mutex_;  // guards what follows
  std::vector<pm::Offset> undo_;
  std::vector<pm::Offset> memory_;
  std::uint64_t undo_used_ = 0;
  std::uint64_t memory_used_ = 0;
  std::uint64_t operations_ = 0;  // that are running, each with its room
  bool unfenced_ = false;         // there is an undo record that may not be durable
  LineSet logged_;                // where logged lines begin
  std::vector<Line> lines_;       // the same, with sizes
  FreshBlocks fresh_;
  std::uint64_t written_ = 0, saved_ = 0;
  std::atomic<bool> broken_{false};
  std::atomic<bool> foreign_memory_{false};  // a plug-in has named some; then broken_, too
};

}  // namespace perdix::detail::index::tips
