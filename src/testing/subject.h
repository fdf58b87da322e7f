// What is explored: a workload on a medium, which is crashed and opened again.
//
// A subject says what its contents are and what each step does to them. All the rest (running it,
// crashing it, opening what a crash leaves, and judging it) is done for it.
#pragma once

#include <cstdint>
#include <memory>

#include "testing/medium.h"
#include "testing/workload.h"

namespace perdix::testing {

class Opened : public Instance {
 public:
  virtual State contents() = 0;
  bool shows(const State& state) override { return contents() == state; }
  /// Ends the instance in an orderly way, and verifies what can only be verified then (that nothing
  /// leaks, for example).
  virtual Problems close() = 0;
};

class Subject : public Workload {
 public:
  /// Bytes of its medium.
  virtual std::uint64_t size() const = 0;
  /// Brings the medium, whatever it holds, into a durable first state. How that looks, and how
  /// steps are drawn until the next call, depends on `random`.
  virtual State create(Medium& medium, detail::util::Random& random) = 0;
  /// Opens the content of the medium and repairs the effects of a crash. Throws what the subject
  /// throws when it can't.
  virtual std::unique_ptr<Opened> open(Medium& medium) = 0;
};

}  // namespace perdix::testing
