// Indexes of users, in C++ and in C, for the crash-state explorer.
#pragma once

#include <vector>

#include "testing/subjects/subjects.h"

namespace perdix::testing {

std::vector<SubjectEntry> plugged_subjects();

}  // namespace perdix::testing
