// What the system knows of a thread: whether it sleeps, for example for a lock of a library or for
// a grace period, and how long it has run. So a test can tell a thread that waits from one that
// gets no processor.
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <string>

namespace perdix::detail::util {

/// Whether the system has put a thread of this process to sleep. False once it has ended. Cost:
/// reads a file of /proc.
inline bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  // The state follows the name, which is in parentheses and may hold any others.
  const std::size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.compare(name_end, 3, ") S") == 0;
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

}  // namespace perdix::detail::util
