// The contenders of the benchmark. An engine of perdix is one small file beside this one, which
// CMake finds; another contender also needs its line here and in engines.cc.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ycsb/store.h"

namespace perdix::bench {

/// All contenders, the indexes of perdix first.
std::span<const Engine> engines();

/// Whether a contender is an index of perdix, and lies in a pool.
bool is_of_perdix(const Engine& engine);

/// The contender of that name. Throws perdix::Error invalid_argument, which lists the names.
const Engine& find_engine(std::string_view name);

Engine btree_map_engine();
Engine std_map_engine();
Engine lmdb_engine();
Engine rocksdb_engine();
Engine tbb_engine();
Engine libcuckoo_engine();
Engine xenium_engine();
Engine flat_map_engine();
Engine tkrzw_engine();

/// "volatile:btree" and the like, which tips:btree is held against.
std::vector<Engine> volatile_plugin_engines();

}  // namespace perdix::bench
