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
/// left of the cold range that the leaf is in, and there are about as many cold ranges as leaves
/// that came back by themselves. The cold ranges share only the log.
class LogShare {
 public:
  /// A stale chain that gets its END.
  struct Closing {
    util::SpinLock lock;  ///< guards the chain
    wal::Chain chain;
  };

  /// Held by the thread that declares the resumption done.
  std::mutex finishing;

  /// The Closing of the calling thread's stripe. There are several, so that threads rarely wait.
  Closing& closing() { return closings_[util::current_stripe() % closings_.size()]; }

  template <class Visit>
  void for_each_closing(Visit visit) {
    for (Closing& closing : closings_) visit(closing);
  }

 private:
  std::array<Closing, 8> closings_;
};

/// done(): every leaf has a middle node, and every chain of the log a buffer. LogShare is the first
/// base, so the thread ends before what it uses is destroyed.
class Resumption : public LogShare, public index::Resumption {};

}  // namespace perdix::detail::index::sptree
