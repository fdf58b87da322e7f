// A child process that runs this program again with other arguments and writes records to a pipe.
// Used by one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "kill/record.h"

namespace perdix::test::kill {

/// A child that says nothing for so long hangs: no machine is that slow, and ctest leaves more.
inline constexpr std::chrono::seconds kHang{300};

class Process {
 public:
  /// Starts the child. Throws std::system_error.
  explicit Process(const std::vector<std::string>& arguments);

  /// Kills the child if it still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Adds the records that have arrived to `records`; waits up to `patience` for the first one.
  /// Returns false when the child has ended and all its records have been read.
  bool receive(std::vector<Record>& records, std::chrono::microseconds patience);

  /// SIGKILL, if it still runs.
  void kill();

  /// Waits for the end; what waitpid() says.
  int wait();

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
  std::optional<int> status_;
};

/// The child's end of the pipe.
class Sender {
 public:
  /// Ends this process with its parent. Call first of all in a child.
  Sender();

  /// Thread-safe.
  void send(Record::Type type, unsigned thread, std::uint32_t number, std::uint64_t payload) const;

  /// Describes a problem; the parent reports it. For one thread at a time.
  void problem(const std::string& text) const;
};

}  // namespace perdix::test::kill
