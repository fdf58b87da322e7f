// The toy table of points, for the crash-state explorer.
#pragma once

#include "testing/subjects/subjects.h"

namespace perdix::toys::points {

testing::SubjectEntry subject();

}  // namespace perdix::toys::points
