// Runs work in a separate process, so that it can be killed and a restart is a real one.
//
// The program itself never opens a pool and has one thread only, so it can fork at any time.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>

namespace perdix::bench::resumption {

/// An object in memory that this process shares with those that it forks later.
template <class T>
class Shared {
 public:
  static_assert(std::is_trivially_destructible_v<T>);

  Shared() {
    void* memory =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    object_ = new (memory) T();
  }
  ~Shared() { ::munmap(object_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }

 private:
  T* object_;
};

class Process {
 public:
  /// Forks. The child does the work and ends. finish() and running() throw in the parent what the
  /// work throws in the child. The child is killed when its parent ends.
  explicit Process(const std::function<void()>& work);
  /// Kills it with SIGKILL if it runs.
  ~Process() { kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Whether it has not ended yet. Throws perdix::Error if it failed, Cancelled once `stop` is
  /// true.
  bool running(const std::atomic<bool>& stop);

  /// Waits for its end. Throws as running().
  void finish(const std::atomic<bool>& stop);

  void kill();

 private:
  using Message = std::array<char, 512>;

  Shared<Message> error_;
  pid_t pid_ = -1;  ///< -1: has ended
};

/// Calls work(thread) on `threads` threads, the first of them this one. Rethrows the first
/// exception; `failed` is true from then on, so that others may end early.
void run_threads(unsigned threads, std::atomic<bool>& failed,
                 const std::function<void(unsigned thread)>& work);

}  // namespace perdix::bench::resumption
