// Decides which thread runs: one at a time, each until a scheduling point at which the turn goes to
// another. Points are what the threads announce: events of the probe, and the calls of operations.
//
// So threads are suspended at critical places, for example between a store and its flush, for long
// enough that the others do much work. A seed decides when, in one of two ways:
//   - by chance: at each point the turn passes with some probability;
//   - by priorities (PCT, Burckhardt et al., 2010): the thread of the highest priority runs, until
//     at one of a few points drawn beforehand it becomes the lowest. A bug that needs d such
//     changes is found with a probability that does not shrink with the number of interleavings.
//
// A thread that waits for a lock of a suspended one says so (yield()); it gets no turn before an
// operation has ended, which may have released the lock. So a run depends on nothing but the seed.
// Only where a thread sleeps in the kernel, for example for a mutex, does the clock decide. The
// turn is taken from a thread that was found asleep twice without a point in between, or that runs
// without a point for kPatience of processor time: one that gets no processor is not waiting.
//
// Thread-safe.
#pragma once

#include <semaphore.h>
#include <sys/types.h>
#include <time.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "util/random.h"

namespace perdix::testing {

class Scheduler {
 public:
  static constexpr std::chrono::nanoseconds kPatience = std::chrono::seconds(1);
  static constexpr std::chrono::milliseconds kLook{1};

  /// `expected_points`: about how many points there will be in all.
  Scheduler(unsigned threads, std::uint64_t seed, std::uint64_t expected_points);

  /// A thread takes part for as long as this lives. The first turn is given when all have come.
  class Member {
   public:
    explicit Member(Scheduler& scheduler, unsigned number)
        : scheduler_(scheduler), number_(number) {
      scheduler_.join(number_);
    }
    ~Member() { scheduler_.leave(number_); }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    Scheduler& scheduler_;
    unsigned number_;
  };

  /// A scheduling point of the calling thread: returns when it has the turn. Nothing for others.
  void point();

  /// A point() between two operations of the thread.
  void point_between();

  /// Returns when the calling thread has the turn, and is no point. One that slept may run without
  /// it until its next point.
  void await_turn();

  /// The calling thread waits for another: the turn goes on.
  void yield();

  /// A scheduling point at which the calling thread stays for `points` points of the others, unless
  /// they all wait.
  void stay(std::uint64_t points);

  /// Calls `action` at the given point (the first is 1), while every thread is stopped.
  void at_point(std::uint64_t point, std::function<void()> action);

  /// After `points` more points the turn passes on once, and then only from a thread that waits or
  /// has ended. So all other threads stay where they are.
  void pass_for_good_after(std::uint64_t points);

  /// Takes the turn from threads that sleep or hang, until all members have left.
  void watch();

  /// Points so far.
  std::uint64_t points() const;

  /// How often watch() took the turn from a thread that slept or hung.
  std::uint64_t takings() const;

 private:
  /// std::counting_semaphore would call sched_yield(), which a probe may turn into yield().
  class WakeUp {
   public:
    WakeUp() { ::sem_init(&semaphore_, 0, 0); }
    ~WakeUp() { ::sem_destroy(&semaphore_); }
    WakeUp(const WakeUp&) = delete;
    WakeUp& operator=(const WakeUp&) = delete;
    void send() { ::sem_post(&semaphore_); }
    void await() {
      while (::sem_wait(&semaphore_) != 0) {  // interrupted by a signal
      }
    }

   private:
    sem_t semaphore_;
  };

  struct Thread {
    std::thread::id id;
    pid_t system_id = 0;
    clockid_t clock{};
    WakeUp wake_up;
    std::int64_t priority = 0;
    bool active = false;
    bool parked = false;  // until it has the turn
    bool waits = false;
    bool asleep = false;            // in the kernel, when the turn was taken from it
    std::uint64_t stays_until = 0;  // by the number of points
  };

  void join(unsigned number);
  void leave(unsigned number);
  Thread* find_self();
  void arrive(std::unique_lock<std::mutex>& lock, Thread& self);
  bool passes_on();
  std::vector<Thread*> candidates(const Thread* from);
  void choose(Thread* from);
  void unlock_and_wake(std::unique_lock<std::mutex>& lock);
  void park(std::unique_lock<std::mutex>& lock, Thread& self);

  // Of all members: one of them runs at a time, and to wake another there is cheap.
  const int processor_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<Thread> threads_;
  Thread* current_ = nullptr;
  Thread* to_wake_ = nullptr;  // was chosen, and is parked
  unsigned joined_ = 0;
  unsigned left_ = 0;
  std::uint64_t points_ = 0;
  std::uint64_t takings_ = 0;
  std::uint64_t action_at_ = 0;
  std::function<void()> action_;
  detail::util::Random random_;
  std::optional<std::uint64_t> one_in_;  // by chance; else by priorities
  std::set<std::uint64_t> changes_;
  std::optional<std::uint64_t> last_change_;
  std::int64_t lowest_ = 0;
};

}  // namespace perdix::testing
