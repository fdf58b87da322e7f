// The resumption of an SpTree (resume.cc), and the lock that it needs.
#pragma once

#include <mutex>

#include "index/common/resumption.h"
#include "util/ticket_lock.h"
#include "wal/chain.h"

namespace perdix::index::sptree {

/// Whoever makes leaves warm holds it. The thread in the background gets every second turn, and
/// those that need a certain leaf share the others. Were it given only what they leave, a leaf
/// would come back with each lookup and hardly any besides, until all of a large index is back.
class WarmingLock {
 public:
  class Turn {
   private:
    friend class WarmingLock;
    std::unique_lock<std::mutex> among_callers_;
    std::unique_lock<util::TicketLock> lock_;
  };

  /// For a call that needs a certain leaf.
  Turn lock() {
    Turn turn;
    turn.among_callers_ = std::unique_lock(among_callers_);
    turn.lock_ = std::unique_lock(lock_);
    return turn;
  }

  /// For whoever makes all leaves warm.
  Turn lock_for_all() {
    Turn turn;
    turn.lock_ = std::unique_lock(lock_);
    return turn;
  }

  wal::Chain closing;  ///< the stale chain that gets its END; guarded by the lock

 private:
  std::mutex among_callers_;  // so that one of them at most waits for the lock
  util::TicketLock lock_;
};

/// Done: every leaf has a middle node, and every chain of the log a buffer. Set with the lock held.
class Resumption : public WarmingLock, public index::Resumption {};  // the thread ends first

}  // namespace perdix::index::sptree
