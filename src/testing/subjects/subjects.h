// The list of what is explored. An engine joins with one line in subjects.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pm/domain.h"
#include "testing/subject.h"

namespace perdix::testing {

struct SubjectEntry {
  std::string name;   ///< "calloc", or an engine with its kinds: "sptree:u64:bytes"
  unsigned threads;  ///< threads whose steps it can take at once; 1: not several
  std::unique_ptr<Subject> (*make)(const std::string& name, pm::Domain domain);
};

/// All subjects: the layers below the engines, then every engine with every kind of key and value.
std::vector<SubjectEntry> subjects();

}  // namespace perdix::testing
