// The threads that replay together (paper, 4.2.1). They start when run() first needs them, sleep
// between two rounds, and end with the object.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace perdix::detail::index::tips {

/// One thread at a time calls run(): the one in Upkeep::alone().
class Workers {
 public:
  Workers() = default;
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Calls task(0) to task(count - 1), count > 0, in parallel as far as threads can be had. The
  /// calling thread calls task(0), and those for which there is no thread. Returns when all have
  /// ended. `task` throws nothing.
  void run(unsigned count, const std::function<void(unsigned)>& task);

 private:
  void start(unsigned threads) noexcept;
  void work(unsigned number);

  std::vector<std::thread> threads_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable begun_, ended_;
  const std::function<void(unsigned)>* task_ = nullptr;
  std::uint64_t round_ = 0;
  unsigned threads_of_round_ = 0;
  unsigned left_ = 0;  // threads of the round that have not ended
  bool stopping_ = false;
};

}  // namespace perdix::detail::index::tips
