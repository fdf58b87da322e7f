// The sample table of points, for the crash-state explorer.
#pragma once

#include "testing/subjects/subjects.h"

namespace perdix::samples::points {

testing::SubjectEntry subject();

}  // namespace perdix::samples::points
