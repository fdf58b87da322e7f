// Loads a store in a separate process and kills that process, so that another process can open what
// it has left.
//
// A process with several threads cannot be forked safely, and systems start threads. The
// constructor therefore forks a helper process while there is only one thread, and the helper forks
// the processes that load and are killed. The helper ends with this object.
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

  /// Starts a process that opens the system of that name with `setup` and inserts records 0 to
  /// `records` - 1. Kills it with SIGKILL when the last insert has returned. If the process fails,
  /// throws perdix::Error with its message.
  void load_and_kill(std::string_view system, const Setup& setup, std::uint64_t records,
                     std::uint64_t seed);

 private:
  pid_t helper_ = -1;
  int channel_ = -1;
};

}  // namespace perdix::bench
