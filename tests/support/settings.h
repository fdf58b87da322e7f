// The settings of a test run from the environment. Thread-safe.
//
//   PERDIX_SEED        seed of every random choice; without it a new one for each run
//   PERDIX_TEST_SCALE  factor on the number of operations (default 1); 10 makes a campaign
//   PERDIX_TEST_DIR    folder for pools; without it one in memory, where there is room
//   PERDIX_TEST_DISK   folder on a disk for the pools of the page_cache domain; without it they lie
//                      where the others do, since most cases don't depend on the medium
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace perdix::test {

std::uint64_t seed();

double scale();

/// PERDIX_TEST_DISK; empty without it.
std::string disk_folder();

/// `count` operations at the scale of this run, but at least `least`.
std::size_t scaled(double count, std::size_t least = 1);

/// The variables that make another run do the same: "PERDIX_SEED=7 PERDIX_TEST_SCALE=2".
std::string replay_environment();

}  // namespace perdix::test
