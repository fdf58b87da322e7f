// One thread at a time: threads of a workload take turns at the events of the probe, in an order
// that a seed decides.
//
// So the recorded order of stores is the order in which they became visible, and a schedule can be
// run again. A thread that waits for a lock which a thread without the turn holds has no events;
// after `kPatience` the turn is taken from it. That is the only thing that depends on time, and
// only the schedule does.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "util/random.h"

namespace perdix::testing {

class Turns {
 public:
  static constexpr std::chrono::milliseconds kPatience{2};

  /// At each event the turn goes to another thread with probability 1 / one_in.
  Turns(unsigned threads, std::uint64_t seed, std::uint64_t one_in);

  /// An event of a thread: returns when it is this thread's turn. `storing`: until done() the turn
  /// can't be taken from it.
  void event(unsigned thread, bool storing = false);
  void done(unsigned thread);

  /// The thread has ended, or has not begun: it takes no more turns.
  void leave(unsigned thread);

 private:
  void pass_on(unsigned thread);
  void wait(std::unique_lock<std::mutex>& lock, unsigned thread);

  std::mutex mutex_;
  std::condition_variable changed_;
  util::Random random_;
  std::uint64_t one_in_;
  std::vector<bool> active_;
  std::vector<bool> waiting_;
  std::uint64_t events_ = 0;
  unsigned current_ = 0;
  bool storing_ = false;
};

}  // namespace perdix::testing
