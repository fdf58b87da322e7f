#include "testing/subjects/subjects.h"

#include "testing/subjects/calloc_subject.h"

namespace perdix::testing {

std::vector<SubjectEntry> subjects() {
  return {{"calloc", 4, [](const std::string&, pm::Domain domain) { return make_calloc_subject(domain); }}};
}

}  // namespace perdix::testing
