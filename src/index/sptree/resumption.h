// The resumption of an SpTree (resumer.h), and what leaves share that become warm at the same time.
#pragma once

#include <array>
#include <mutex>

#include "index/common/resumption.h"
#include "util/spin_lock.h"
#include "util/stripe.h"
#include "wal/chain.h"

namespace perdix::detail::index::sptree {

/// Leaves come back in parallel. A thread that makes a leaf warm holds the lock of the node to the
/// left of the gap that the leaf is in, and there are about as many gaps as leaves that came back
/// by themselves. The gaps share only the log.
class LogShare {
 public:
  /// A stale chain that gets its END.
  struct Closing {
    util::SpinLock lock;  ///< guards the chain
    wal::Chain chain;
  };

  /// Held by the thread that declares the resumption done.
  std::mutex finishing;

  /// One of some, so that threads rarely meet.
  Closing& closing() { return closings_[util::current_stripe() % closings_.size()]; }

  template <class Visit>
  void for_each_closing(Visit visit) {
    for (Closing& closing : closings_) visit(closing);
  }

 private:
  std::array<Closing, 8> closings_;
};

/// Done: every leaf has a middle node, and every chain of the log a buffer. (The thread ends before
/// what it uses goes: the order of the bases.)
class Resumption : public LogShare, public index::Resumption {};

}  // namespace perdix::detail::index::sptree
