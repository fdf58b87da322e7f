// How the cases of this folder are called.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "support/engines.h"
#include "util/test_name.h"

namespace perdix::test {

inline std::string name_of(const ::testing::TestParamInfo<IndexType>& info) {
  return detail::util::test_name(info.param.name + "_" + info.param.kinds());
}

}  // namespace perdix::test
