// The list of what is explored. Engines come from the registry of the library; what lies below them
// is listed in subjects.cc.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pm/domain.h"
#include "testing/subject.h"

namespace perdix::testing {

struct SubjectEntry {
  /// "calloc:any", "calloc:full", "pool", "wal", or an engine with its kinds: "sptree:u64:bytes".
  std::string name;
  unsigned threads;  ///< threads whose steps it can take concurrently; 1: not several
  std::function<std::unique_ptr<Subject>(detail::pm::Domain)> make;
};

/// All subjects: the layers below the engines, then every engine with every kind of key and value.
std::vector<SubjectEntry> subjects();

}  // namespace perdix::testing
