// Growth of a pool's file and mapping, the next unit made ready ahead of use.
//
// Allocating and first touching 16 MiB takes milliseconds. So once a pool has grown, its growth
// thread makes one more unit ready and sleeps until that unit is taken. A pool is never more than
// one unit larger than needed. A pool that doesn't grow has no such thread, and its only unit is
// touched as it is used. This costs nothing where the file has huge pages, and elsewhere less than
// touching all of it.
//
// Thread-safe. Lock order: the pool's locks before this one's.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

#include "pm/file.h"
#include "pm/mapping.h"
#include "pm/persist.h"

namespace perdix::detail::pool {

class Growth {
 public:
  /// `durable`: the file's new length must survive a power failure before it is used.
  Growth(pm::File& file, pm::Mapping& mapping, const pm::Persister& pm, bool durable)
      : file_(file), mapping_(mapping), pm_(pm), durable_(durable) {}

  /// Ends the thread. A unit that was made ready and never taken stays in the file.
  ~Growth();
  Growth(const Growth&) = delete;
  Growth& operator=(const Growth&) = delete;

  /// Returns when the pool's first `size` bytes have space on the device and are mapped. Waits only
  /// if they are not ready yet. Throws out_of_space or io_error, nothing changed.
  void take(std::uint64_t size);

  /// Asks the thread to touch [begin, end) of what is mapped, so that stores to it don't fault.
  void touch(std::uint64_t begin, std::uint64_t end);

  /// Waits until the thread has nothing to do. For tests.
  void wait_until_idle();

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };

  void make_ready(std::uint64_t size);
  void add_untouched(Range range) noexcept;
  bool has_work() const;
  void wake_thread();
  void run();
  void step(std::unique_lock<std::mutex>& lock);

  pm::File& file_;
  pm::Mapping& mapping_;
  const pm::Persister& pm_;
  const bool durable_;

  std::mutex mutex_;  // guards the growth of file_ and mapping_, and what follows
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::uint64_t wanted_ = 0;     // the thread makes this many bytes ready
  std::deque<Range> untouched_;  // what the thread is to touch
  bool busy_ = false;            // the thread is touching, without the lock
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace perdix::detail::pool
