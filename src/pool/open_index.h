// The calls of a pool to an open index of any data model, and the list of the indexes that it can
// call.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include <perdix/types.h>

#include "pm/offset.h"

namespace perdix::detail::pool {

using BlockVisitor = std::function<void(pm::Offset)>;

/// The part of an index that its pool can call. Thread-safe.
class OpenIndex {
 public:
  virtual ~OpenIndex() = default;
  OpenIndex(const OpenIndex&) = delete;
  OpenIndex& operator=(const OpenIndex&) = delete;

  virtual IndexStats stats() const = 0;

  /// Verifies every invariant of the index. Writers must be idle.
  virtual CheckReport check() const = 0;

  /// Shows every block of the pool that this index reaches. Writers must be idle.
  virtual void for_each_block(const BlockVisitor& visit) const = 0;

  /// Frees blocks that this index keeps and does not need: the pool is full, and another index or
  /// the caller may need them. A block counts as freed when its Session has finished; the pool
  /// waits for its grace period. Returns whether any block was freed. May itself wait for a grace
  /// period, or until the index is back after its opening. The caller is any thread, holds neither
  /// a lock nor a Session nor an epoch::Guard, and is the only one in its pool. Must not call
  /// PoolCore::reclaim_space() (retry_when_full does).
  virtual bool reclaim_space() noexcept { return false; }

 protected:
  OpenIndex() = default;
};

/// The open indexes of one pool that may have space to give back. Thread-safe.
class OpenIndexes {
 public:
  OpenIndexes() = default;
  OpenIndexes(const OpenIndexes&) = delete;
  OpenIndexes& operator=(const OpenIndexes&) = delete;

  /// Lists an index as long as it lives: the last member of the index, so that the pool calls
  /// neither an index that is not complete nor one that is going away. Both ends of its life wait
  /// for a call of reclaim_space() that is running, so its thread must hold no lock and no Guard.
  class Entry {
   public:
    Entry(OpenIndexes& list, OpenIndex& index);
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry();

   private:
    OpenIndexes& list_;
    OpenIndex& index_;
  };

  /// Calls reclaim_space() of each index. Returns whether any of them freed a block.
  bool reclaim_space();

 private:
  std::mutex mutex_;  // guards all_; held while an index is called, so that it stays
  std::vector<OpenIndex*> all_;
};

}  // namespace perdix::detail::pool
