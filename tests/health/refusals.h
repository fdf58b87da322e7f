// What all suites of this folder expect, and how their cases are called.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "pm/test_files.h"
#include "util/test_name.h"
#include "workloads/workloads.h"

namespace perdix::test {

inline constexpr const char* kName = "index";  // of what a pool has in it

inline std::string name_of(const ::testing::TestParamInfo<WorkloadEntry>& info) {
  return detail::util::test_name(info.param.name);
}

inline void expect_none(const testing::Problems& problems) {
  for (const std::string& problem : problems) ADD_FAILURE() << problem;
}

/// Every call of the pool and of what is open in it throws such an error.
inline void expect_refused(Errc code, const std::string& part, Pool& pool,
                           testing::Instance& instance, const WorkloadEntry& entry) {
  std::vector<testing::NamedCall> calls = instance.calls();
  calls.push_back({"info", false, [&] { pool.info(); }});
  calls.push_back({"indexes", false, [&] { pool.indexes(); }});
  calls.push_back({"check of the pool", false, [&] { pool.check(); }});
  calls.push_back({"drop", true, [&] { pool.drop(kName); }});
  calls.push_back({"opening another", true, [&] { entry.open(pool, "another"); }});
  for (const testing::NamedCall& call : calls) {
    SCOPED_TRACE(call.name);
    testing_files::expect_error(code, part, call.call);
  }
}

}  // namespace perdix::test
