// The systems of the benchmark. Each has one small file in this directory, which defines
// <file>_systems(). CMakeLists.txt finds those of perdix's engines, and lists the others.
#pragma once

#include <span>
#include <string_view>

#include "ycsb/store.h"

namespace perdix::bench {

/// All systems, the indexes of perdix first.
std::span<const System> systems();

/// Whether a system is an index of perdix and thus lies in a pool.
bool is_of_perdix(const System& system);

/// The system of that name. Throws perdix::Error invalid_argument, which lists the names.
const System& find_system(std::string_view name);

}  // namespace perdix::bench
