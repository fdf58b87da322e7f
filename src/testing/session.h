// One life of a subject: opened, read, changed by some steps, read again, checked, closed; all of
// it recorded. It may also be changed before it is read for the first time. Then writers meet what
// a crash left to be repaired on first use.
//
// The workload is a session on a sound medium; opening what a crash left is one too, and so its
// trace can be crashed in turn.
#pragma once

#include <cstdint>
#include <vector>

#include "testing/expectation.h"
#include "testing/recorder.h"
#include "testing/subject.h"
#include "testing/trace.h"

namespace perdix::testing {

struct SessionPlan {
  std::uint64_t seed = 0;
  unsigned threads = 1;
  unsigned steps = 0;           ///< of each thread
  std::uint64_t switching = 4;  ///< threads change turns at one event in this many
  /// What may be there when it is opened; needed for steps before the contents were read.
  const Expectation* known = nullptr;
  unsigned first_steps = 0;  ///< as many, at most
};

struct Session {
  Trace trace;
  std::vector<Call> calls;  ///< by step number
  State observed;           ///< when it was opened, after the first steps
  bool opened = false;      ///< `observed` is valid
  Problems problems;        ///< apart from `observed`, of which the session knows nothing
};

Session run_session(Subject& subject, Medium& medium, Recorder& recorder, const SessionPlan& plan);

}  // namespace perdix::testing
