// A place for instruments that count something else than time during a phase, such as the accesses
// to persistent memory in an instrumented build. What a meter counts is printed beside the phase's
// figures, per operation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace perdix::bench {

struct Count {
  std::string name;  ///< for example "PM lines read"
  std::uint64_t value = 0;
};

class Meter {
 public:
  virtual ~Meter() = default;

  /// A phase is about to begin; no other thread runs.
  virtual void start() = 0;

  /// The phase has ended. What was counted since start(), in total.
  virtual std::vector<Count> stop() = 0;
};

}  // namespace perdix::bench
