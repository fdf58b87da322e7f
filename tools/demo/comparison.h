// The last step of the demo: a short benchmark beside other stores.
#pragma once

#include <cstdint>
#include <filesystem>

#include "terminal/progress.h"

namespace perdix::demo {

/// Runs YCSB load and A to F in `directory` on SpTree and on those of a volatile B-tree map, LMDB
/// and RocksDB that were installed when the demo was built, and prints a table. False if a system
/// gave a wrong answer, which is printed too.
bool compare(const std::filesystem::path& directory, std::uint64_t records, std::uint64_t seed,
             terminal::ProgressStyle style);

}  // namespace perdix::demo
