// All engines that the suites run over: those of the release, then the toys.
#pragma once

#include <tuple>

#include "engine_list.h"
#include "toys/hash/test_traits.h"

namespace perdix::toys {

using Toys = std::tuple<hash::TestTraits>;
using AllEngines = decltype(std::tuple_cat(EngineList(), Toys()));

}  // namespace perdix::toys
