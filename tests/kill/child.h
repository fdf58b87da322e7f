// The children of a kill test: one that works until it is killed, one that only opens the pool, and
// one that verifies what is in it.
#pragma once

#include "kill/plan.h"

namespace perdix::test::kill {

/// Runs the child that --role asks for: "write", "open" or "verify". Returns the exit status; a
/// problem has been sent to the parent if it is not 0.
int run_child(const Options& options);

}  // namespace perdix::test::kill
