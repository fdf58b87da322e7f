// A thread that drains a full half of the journal while the other one is filled (pm/journal.h).
//
// It is a thread of its own and not one of the writers: a writer would wait for thousands of pages,
// and one that is suspended meanwhile would hold up all others as soon as the second half is full.
// It is not pool::Background either, whose work commits, and so may wait for a half to be free.
//
// The thread begins with the first half that is full, so a pool that is written little has none.
// Where none can be started, begin() says so, and the caller does the work. It has no part in a
// fork: a child has neither the thread nor the pool.
//
// One thread at a time calls this, but for give_up(). One piece of work at a time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "pm/sync_device.h"

namespace perdix::detail::pm {

class Drainer {
 public:
  /// `drain`: the work; returns 0 or an errno. `device`: for the work; null if there is none that
  /// may sync beside the writers'. Then begin() fails.
  Drainer(SyncDevice* device, std::function<int(SyncDevice&)> drain)
      : device_(device), drain_(std::move(drain)) {}
  ~Drainer() { end(); }
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;

  /// Starts the work on the thread. False if there is no thread for it. What was begun before has
  /// ended.
  bool begin() noexcept;

  /// The errno of the work that has failed; 0 if none has. Does not wait.
  int error() const noexcept { return error_.load(std::memory_order_acquire); }

  /// Waits for the end of the work that was begun. Returns as error().
  int wait() noexcept;

  /// Waits for the end of the work, and ends the thread. begin() fails from then on.
  void end() noexcept;

  /// Work that has not ended is not needed any more: its next sync fails (ECANCELED). Any thread.
  void give_up() noexcept { given_up_.store(true, std::memory_order_relaxed); }

 private:
  /// The device, until give_up().
  class Device final : public SyncDevice {
   public:
    explicit Device(Drainer& drainer) : drainer_(drainer) {}
    int sync(void* begin, std::size_t bytes) noexcept override;

   private:
    Drainer& drainer_;
  };

  void run() noexcept;

  SyncDevice* const device_;
  const std::function<int(SyncDevice&)> drain_;
  std::atomic<int> error_{0};
  std::atomic<bool> given_up_{false};

  std::mutex mutex_;               // guards what follows
  std::condition_variable wake_;   // the thread: there is work, or it ends
  std::condition_variable ended_;  // the caller: the work has ended
  bool begun_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace perdix::detail::pm
