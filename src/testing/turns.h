// One thread at a time: threads of a workload take turns at the events of the probe, in an order
// that a seed decides.
//
// So the recorded order of stores is the order in which they became visible, and a schedule can be
// run again. A thread that waits for a lock of perdix says so (yield()) and passes the turn on. One
// that waits for a lock of a library has no events: the turn is taken from it once it was asleep
// twice, `kPatience` apart, or has spun for `kPatience` of processor time. A thread that the system
// merely doesn't run is not waiting. Only this depends on time, and it affects only the schedule.
//
// Thread-safe.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "util/random.h"

namespace perdix::testing {

class Turns {
 public:
  using Time = std::chrono::nanoseconds;
  static constexpr Time kPatience = std::chrono::microseconds(200);

  enum class At { other, store, persist };

  /// At each event the turn goes to another thread with probability 1 / one_in; before a flush or a
  /// fence with at least one half, so that others go on while something is visible and not durable.
  Turns(unsigned threads, std::uint64_t seed, std::uint64_t one_in);

  /// An event of a thread: returns when it is this thread's turn. At a store: until done() the turn
  /// can't be taken from it.
  void event(unsigned thread, At at);
  void done(unsigned thread);

  /// The thread waits for what another one must do: returns when it has the turn again.
  void yield(unsigned thread);

  /// The thread has ended, or has not begun: it takes no more turns.
  void leave(unsigned thread);

 private:
  // The system's identifiers of a thread.
  struct Identity {
    pid_t id = 0;  // 0 before its first event
    clockid_t clock = 0;
  };
  // The thread with the turn, as it was when it was looked at.
  struct Holder {
    unsigned thread = 0;
    std::uint64_t events = 0;
    Time processor{};
    bool asleep = false;

    bool same_as(const Holder& other) const {
      return thread == other.thread && events == other.events;
    }
  };

  static Identity this_thread();
  Holder look() const;
  bool stuck(const Holder& before, const Holder& now) const;
  void pass_on(unsigned thread);
  void wait(std::unique_lock<std::mutex>& lock, unsigned thread);

  std::mutex mutex_;
  std::condition_variable changed_;
  detail::util::Random random_;
  std::uint64_t one_in_;
  std::vector<bool> active_;
  std::vector<bool> waiting_;
  std::vector<Identity> identities_;
  std::uint64_t events_ = 0;
  unsigned current_ = 0;
  bool storing_ = false;
};

}  // namespace perdix::testing
