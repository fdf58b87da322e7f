// Containers that TipsOf makes durable, of which the explorer sees the words that change.
//
// A write() sets a key, or erases one, or changes several together, or throws after some changes.
#pragma once

#include <vector>

#include "testing/subjects/subjects.h"

namespace perdix::testing {

/// A subject for each of some containers, by their kinds of memory: nodes, buckets, one array.
std::vector<SubjectEntry> tips_of_subjects();

}  // namespace perdix::testing
