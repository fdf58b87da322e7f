// A place for instruments that count something else than time during a phase, such as the accesses
// to persistent memory in an instrumented build. What a meter counts is printed beside the phase's
// figures, per operation.
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

  /// A system is about to be opened on files that did not exist before.
  virtual void open() {}

  /// A phase is about to begin; no other thread runs.
  virtual void start() = 0;

  /// The phase has ended. What was counted since start(), in total.
  virtual std::vector<Count> stop() = 0;

  /// Around each operation, on the thread that executes it; only in an instrumented build.
  virtual void begin(OpKind) {}
  virtual void end() {}
};

/// Tells a meter, if there is one, of an operation; nothing in a normal build.
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
