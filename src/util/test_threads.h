// What the system knows of a thread: whether it sleeps, for example for a lock of a library or for
// a grace period, and how long it has run. So a test can tell a thread that waits from one that
// gets no processor.
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace perdix::detail::util {

/// The state of a thread: 'R' (it runs, or could), 'S' (it sleeps), 'T' (it was stopped) and more,
/// as proc(5) has them; 'X' once it has ended. `folder` is its folder in /proc.
inline char state_of_thread(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  std::string line;
  std::getline(file, line);
  // The state follows the name, which is in parentheses and may hold any others.
  const std::size_t name_end = line.rfind(')');
  return name_end != std::string::npos && name_end + 2 < line.size() ? line[name_end + 2] : 'X';
}

/// Whether the system has put a thread of this process to sleep. False once it has ended. Cost:
/// reads a file of /proc.
inline bool is_asleep(pid_t thread) {
  return state_of_thread("/proc/self/task/" + std::to_string(thread)) == 'S';
}

/// The clock of a thread's processor time, which other threads can read.
inline clockid_t clock_of(pthread_t thread) {
  clockid_t clock{};
  ::pthread_getcpuclockid(thread, &clock);
  return clock;
}

/// The processor time that a thread has used; 0 once it has ended.
inline std::chrono::nanoseconds processor_time(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/// Runs call() in a thread that was cancelled before, so that the cancellation comes in the first
/// wait of it that lets it. Returns whether the call ended, and the thread after it.
inline bool ends_after(const std::function<void()>& call) {
  struct Work {
    const std::function<void()>& call;
    bool done = false;
  } work{call};
  pthread_t thread{};
  const auto run = [](void* given) -> void* {
    auto& todo = *static_cast<Work*>(given);
    ::pthread_cancel(::pthread_self());
    todo.call();
    todo.done = true;
    ::pthread_testcancel();
    return nullptr;
  };
  if (::pthread_create(&thread, nullptr, run, &work) != 0) return false;
  void* result = nullptr;
  ::pthread_join(thread, &result);
  return work.done && result == PTHREAD_CANCELED;
}

}  // namespace perdix::detail::util
