// The systems of the benchmark. An engine of perdix is one small file beside this one, which
// CMake finds; another system also needs its line here and in systems.cc.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ycsb/store.h"

namespace perdix::bench {

/// All systems, the indexes of perdix first.
std::span<const System> systems();

/// Whether a system is an index of perdix, and lies in a pool.
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

/// "volatile:btree" and the like, which tips:btree is held against.
std::vector<System> volatile_plugin_systems();

}  // namespace perdix::bench
