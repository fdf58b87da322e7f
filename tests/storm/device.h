// Simulates power failures of pools that must survive them. A file beside each pool holds the pages
// that were synced; this program's msync() and fsync() report each sync (faults.cc).
//
// A failed sync leaves its pages as they were on the device, and no later sync writes them, as in
// most file systems. Thread-safe, except for attach() and lose_power().
#pragma once

#include <cstddef>
#include <string>

#include "support/rng.h"

namespace perdix::test::storm::device {

/// From now on the file of a pool has a device, which holds it as it is.
void attach(const std::string& path);

/// Pages at an address of the process, or all of a file, are synced, or could not be.
void on_sync(const void* address, std::size_t n, bool succeeded);
void on_sync(int fd, bool succeeded);

/// The file of a pool that no process has open becomes what its device may hold: what was synced,
/// and of the sectors that were not, none or any.
void lose_power(const std::string& path, Rng& rng);

}  // namespace perdix::test::storm::device
