// One life of a subject: opened, looked at, changed by some steps, looked at again, checked,
// closed; all of it recorded.
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
  std::uint64_t switching = 4;  ///< threads change turns at one in so many events
};

struct Session {
  Trace trace;
  std::vector<Call> calls;  ///< by step number
  State observed;           ///< when it was opened
  bool opened = false;      ///< `observed` is valid
  Problems problems;        ///< apart from `observed`, of which the session knows nothing
};

Session run_session(Subject& subject, Medium& medium, Recorder& recorder, const SessionPlan& plan);

}  // namespace perdix::testing
