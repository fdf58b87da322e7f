// The threads that replay together (paper, 4.2.1). They start when they are first needed, rest
// between two rounds, and end with the object.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace perdix::detail::index::tips {

/// Used by one thread at a time.
class Workers {
 public:
  Workers() = default;
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Calls task(0) to task(count - 1), in parallel as far as there are threads. The first one is
  /// called here, and so are those for which no thread is available. Returns when all have ended.
  /// `task` throws nothing.
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
