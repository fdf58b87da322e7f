// The children of a kill test: one that works until it is killed, one that only opens the pool, and
// one that verifies what is in it.
#pragma once

#include "kill/plan.h"
#include "kill/process.h"

namespace perdix::test::kill {

/// What the children do to what the pool holds.
class Role {
 public:
  virtual ~Role() = default;
  /// Creates it if it is not there.
  virtual void open(const Pool& pool) = 0;
  /// Works until the process is killed.
  [[noreturn]] virtual void write(const Pool& pool, const Sender& sender) = 0;
  /// Sends what is there to the parent, and closes it. Throws if something is wrong.
  virtual void verify(Pool& pool, const Sender& sender) = 0;
};

/// Runs the child that --role asks for: "write", "open" or "verify". Returns the exit status; a
/// problem has been sent to the parent if it is not 0.
int run_child(const Options& options);

}  // namespace perdix::test::kill
