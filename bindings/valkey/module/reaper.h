// A thread that frees in the background what no key has any more: the indexes of tables and the
// records of flushed databases. Both may take seconds, in which the server must answer.
//
// What it has not done when the server ends is found again at the next start (Tables, Catalogue).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "catalogue.h"
#include "table.h"

namespace perdix::valkey {

class Reaper {
 public:
  Reaper(const Pool& pool, Catalogue& catalogue);
  ~Reaper() { stop(); }

  /// Drops a table once nothing else holds it. Thread-safe.
  void drop_table(std::shared_ptr<Table> table);

  /// Erases the records of a space. Thread-safe.
  void erase_space(std::uint32_t space);

  /// Jobs that are not done. Thread-safe.
  std::uint64_t waiting() const;

  /// Ends the thread, after the job that it is at.
  void stop();

 private:
  using Job = std::function<bool()>;  // false: later again

  void add(Job job);
  void run();
  void run_one(std::unique_lock<std::mutex>& lock);
  bool drop(const std::shared_ptr<Table>& table);

  Pool pool_;
  Catalogue& catalogue_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  std::size_t postponed_ = 0;  // jobs in a row that could not be done
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace perdix::valkey
