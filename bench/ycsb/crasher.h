// Loads a store in a process of its own and kills that process, so that another can open what is
// left.
//
// A process with threads can't be forked safely, and the systems start threads. So a helper
// process is forked while there is still one thread only; it forks the processes that load and die.
// The helper ends with this object.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>

#include "ycsb/store.h"

namespace perdix::bench {

class Crasher {
 public:
  /// Forks the helper. The calling process must have one thread.
  Crasher();
  ~Crasher();
  Crasher(const Crasher&) = delete;
  Crasher& operator=(const Crasher&) = delete;

  /// Lets a new process open the system (by name) as `setup` says, insert records 0 to `records` -
  /// 1, and kills it with SIGKILL once the last insert has returned. Throws perdix::Error with what
  /// went wrong in that process.
  void load_and_kill(std::string_view system, const Setup& setup, std::uint64_t records,
                     std::uint64_t seed);

 private:
  pid_t helper_ = -1;
  int channel_ = -1;
};

}  // namespace perdix::bench
