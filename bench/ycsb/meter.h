// The interface of instruments that count something other than time during a phase, such as
// accesses to persistent memory in an instrumented build. The report shows the counts per operation
// beside the phase's figures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pm/probe.h"
#include "ycsb/workload.h"

namespace perdix::bench {

struct Count {
  std::string operation;  ///< the kind that it is about, for example "get"
  std::string name;       ///< for example "PM lines read"
  std::uint64_t value = 0;
  std::uint64_t operations = 0;  ///< of that kind; 0: what it counts belongs to none
};

class Meter {
 public:
  virtual ~Meter() = default;

  /// Called before a system is opened on new files.
  virtual void open() {}

  /// Called before a phase begins, while no other thread runs.
  virtual void start() = 0;

  /// Called after the phase. Returns the total counts since start().
  virtual std::vector<Count> stop() = 0;

  /// Called before and after each operation, on the thread that executes it, in an instrumented
  /// build only.
  virtual void begin(OpKind) {}
  virtual void end() {}
};

/// Reports an operation to a meter, if there is one. Does nothing in a normal build.
class MeteredOperation {
 public:
  MeteredOperation(Meter* meter, OpKind kind) : meter_(meter) {
    if (detail::pm::kInstrumented && meter_ != nullptr) meter_->begin(kind);
  }
  ~MeteredOperation() {
    if (detail::pm::kInstrumented && meter_ != nullptr) meter_->end();
  }
  MeteredOperation(const MeteredOperation&) = delete;
  MeteredOperation& operator=(const MeteredOperation&) = delete;

 private:
  Meter* meter_;
};

}  // namespace perdix::bench
