// All engines that the suites run over: those of the release, then the sample engines.
#pragma once

#include <tuple>

#include "engine_list.h"
#include "samples/hash/test_traits.h"

namespace perdix::samples {

using Samples = std::tuple<hash::TestTraits>;
using AllEngines = decltype(std::tuple_cat(EngineList(), Samples()));

}  // namespace perdix::samples
