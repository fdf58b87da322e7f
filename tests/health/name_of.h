// How the cases of this folder are called.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/engines.h"

namespace perdix::test {

inline std::string name_of(const ::testing::TestParamInfo<IndexType>& info) {
  std::string name = info.param.name + "_" + info.param.kinds();
  for (char& c : name) c = c == '+' ? '_' : c;
  return name;
}

}  // namespace perdix::test
