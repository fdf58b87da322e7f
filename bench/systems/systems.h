// The systems of the benchmark. Each engine of perdix has one small file in this directory, which
// CMake finds. Any other system also needs a line here and in systems.cc.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ycsb/store.h"

namespace perdix::bench {

/// All systems, the indexes of perdix first.
std::span<const System> systems();

/// Whether a system is an index of perdix and thus lies in a pool.
bool is_of_perdix(const System& system);

/// The system of that name. Throws perdix::Error invalid_argument, which lists the names.
const System& find_system(std::string_view name);

System btree_map_system();
System std_map_system();
System lmdb_system();
System rocksdb_system();
System tbb_system();
System libcuckoo_system();
System xenium_system();
System flat_map_system();
System tkrzw_system();

/// The indexes that tips:btree and the like are compared with: "volatile:btree" and so on.
std::vector<System> volatile_plugin_systems();

}  // namespace perdix::bench
