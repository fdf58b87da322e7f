// Threads for tests. They start together. The first failure is reported and ends all of them.
// Values contain their key and version.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/contract.h"

namespace perdix::test {

/// Whether a test has failed in some thread. Thread-safe.
class Verdict {
 public:
  bool ok() const { return !failed_.load(std::memory_order_relaxed); }

  /// Reports the first failure and ignores later ones, which may follow from it.
  void fail(const std::string& what) {
    if (!failed_.exchange(true)) ADD_FAILURE() << what;
  }

  /// `message` is a callable, so that it costs nothing unless the condition is false.
  template <class Message>
  bool expect(bool condition, Message&& message) {
    if (!condition) fail(message());
    return condition;
  }

 private:
  std::atomic<bool> failed_{false};
};

/// A group of threads with different tasks.
class ThreadGroup {
 public:
  /// Adds `count` threads that run task(number), where numbers go from 0 to count - 1.
  template <class Task>
  void add(unsigned count, Task task) {
    for (unsigned i = 0; i < count; ++i) tasks_.emplace_back([task, i] { task(i); });
  }

  /// Runs all tasks and returns when all have ended. An exception is a failure.
  void run(Verdict& verdict) {
    std::barrier start(static_cast<std::ptrdiff_t>(tasks_.size()));
    std::vector<std::thread> threads;
    for (const auto& task : tasks_) {
      threads.emplace_back([&verdict, &start, &task] {
        start.arrive_and_wait();
        try {
          task();
        } catch (const std::exception& error) {
          verdict.fail(std::string("an unexpected exception: ") + error.what());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    tasks_.clear();
  }

 private:
  std::vector<std::function<void()>> tasks_;
};

/// The content of a value in these tests. Versions of a key start at 1.
struct Mark {
  std::uint64_t key;
  std::uint64_t version;

  std::uint64_t tag() const { return key << 40 | version; }
  static Mark of(std::uint64_t tag) { return {tag >> 40, tag & ((std::uint64_t{1} << 40) - 1)}; }
};

inline Datum marked(Kind kind, std::uint64_t key, std::uint64_t version) {
  return tagged_value(kind, Mark{key, version}.tag());
}

/// The version in a value of `key`; fails if the value is damaged or belongs to another key.
inline std::uint64_t version_of(Verdict& verdict, std::uint64_t key, DatumView value) {
  const auto tag = tag_of(value);
  if (!tag) {
    verdict.fail("a damaged value of key " + std::to_string(key) + ": " + show(value));
    return 0;
  }
  const Mark mark = Mark::of(*tag);
  verdict.expect(mark.key == key, [&] {
    return "key " + std::to_string(key) + " has a value of key " + std::to_string(mark.key);
  });
  return mark.version;
}

/// Position of a key in a sorted set that holds it.
inline std::size_t position(const std::vector<Datum>& keys, DatumView key) {
  return static_cast<std::size_t>(std::lower_bound(keys.begin(), keys.end(), key) - keys.begin());
}

/// Sorted keys that share leaves and are cheap to compare.
inline std::vector<Datum> close_keys(Fixture& fixture, std::size_t count) {
  return fixture.keys_of(count, fixture.rng().once_in(2) ? KeyStyle::dense : KeyStyle::clustered);
}

}  // namespace perdix::test
