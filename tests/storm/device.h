// What a power failure leaves of pools that survive one: a file beside each holds the pages that
// were synced. This program's msync() and fsync() tell it of each sync (faults.cc).
//
// A sync that fails leaves its pages as the device had them, and no later one writes them, as with
// most file systems. Thread-safe, but for attach() and lose_power().
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
