// Work that indexes defer: a thread of the pool does it soon. Only callers that need it done wait
// for it: finish(), drain().
//
// An index has a Job for each kind of such work, and requests it when there is some. The thread
// pauses before it begins, so that one run serves all requests of that time and few of them wake
// it.
//
// While a probe watches, the thread rests and drain() does the work on the caller's thread. So a
// run can be repeated, and an instrument decides when the work happens.
//
// Invariants, under the mutex:
//   1. A job runs on one thread at a time; what was requested before its run began is done when
//      that has ended.
//   2. The thread is awake while a job is requested, unless that was under a probe, or there are
//      too many threads for one more.
//
// Thread-safe. Jobs may be requested with locks held, and in a Guard.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace perdix::detail::pool {

class Background {
 public:
  Background() = default;
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Ends the thread. All jobs are gone.
  ~Background();

  class Job {
   public:
    /// work() does what there is to do when it is called, on any thread. It must not throw, nor use
    /// this object but for request(), nor take locks that are held where finish() is called.
    Job(Background& background, std::function<void()> work);
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    /// As finish(), after which no thread requests the job again.
    ~Job();

    /// There is something to do. Cost: a mutex; a system call if the thread sleeps.
    void request() noexcept;

    /// Returns when all is done that was requested before the call; helps with it.
    void finish() noexcept;

   private:
    friend class Background;

    Background& background_;
    const std::function<void()> work_;
    bool requested_ = false;  // both are guarded by the background's mutex
    bool running_ = false;
  };

  /// Finishes all jobs that were requested before the call. No Guard may be held, nor any lock.
  void drain() noexcept;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void wake() noexcept;
  bool run_next(Lock& lock) noexcept;
  void run(Job& job, Lock& lock) noexcept;
  void finish(Job& job, Lock& lock) noexcept;
  void serve() noexcept;

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::condition_variable ended_;  // a run
  std::vector<Job*> jobs_;         // the one that ran last is the last
  bool awake_ = false;             // the thread has been asked to look
  bool stopping_ = false;
  std::thread thread_;  // from the first request on
};

}  // namespace perdix::detail::pool
