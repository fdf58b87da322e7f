// Runs a map under a schedule that a seed decides, and checks what the threads saw; once as if
// nothing had happened, and once more as if the machine had stopped in between.
//
// Everything comes from the seed: what the map holds at first, the threads' operations, the
// schedule, the moment of the crash and what it leaves. So does the reclamation of memory. With an
// odd seed there is no background thread that reclaims at its own pace, so memory is reused only
// where a call waits for that; with an even one blocks are reused as usual.
//
// In half of the runs threads go on after the crash, on what it has left, and may be crashed again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "testing/linearizability/call_sites.h"
#include "testing/linearizability/map.h"

namespace perdix::testing {

/// How often the threads took each step that has a name (pm::on_step).
using Steps = std::map<std::string, std::uint64_t>;

struct ScheduleOutcome {
  std::vector<std::string> problems;  ///< empty: all was right
  std::uint64_t operations = 0;
  std::uint64_t points = 0;  ///< scheduling points
  Steps steps;
  bool crashed = false;  ///< the moment of the crash came
  bool again = false;    ///< and threads went on after it
};

/// One run. Not while other threads use instrumented memory: installs a probe. What `sites`
/// suppresses has no effect on what the crash leaves; then the crash comes when a call returns soon
/// after the suppressed one, and only if it leaves less because of that. All else is not checked.
ScheduleOutcome run_schedule(const MakeSystem& make, std::uint64_t seed, CallSites& sites);
ScheduleOutcome run_schedule(const MakeSystem& make, std::uint64_t seed);

}  // namespace perdix::testing
