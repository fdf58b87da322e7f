#include "testing/subjects/subjects.h"

#include <fmt/format.h>

#include <perdix/index.h>

#include "testing/subjects/calloc_subject.h"
#include "testing/subjects/index_subject.h"
#include "testing/subjects/pool_subject.h"
#include "testing/subjects/wal_subject.h"

namespace perdix::testing {

std::vector<SubjectEntry> subjects() {
  const auto calloc = [](CallocStart start) {
    return [start](pm::Domain domain) { return make_calloc_subject(start, domain); };
  };
  std::vector<SubjectEntry> all = {{"calloc", 4, calloc(CallocStart::any)},
                                   {"calloc:full", 1, calloc(CallocStart::full)},
                                   {"pool", 1, make_pool_subject},
                                   {"wal", 4, make_wal_subject}};
  for (const std::string& engine : Index::engines()) {
    for (const Kind key : {Kind::u64, Kind::bytes}) {
      for (const Kind value : {Kind::u64, Kind::bytes}) {
        const IndexInfo info{"index", engine, key, value};
        all.push_back({fmt::format("{}:{}:{}", engine, to_string(key), to_string(value)), 4,
                       [info](pm::Domain domain) { return make_index_subject(info, domain); }});
      }
    }
  }
  return all;
}

}  // namespace perdix::testing
