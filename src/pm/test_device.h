// A model of the device under one pool's file, and of the kernel's cache above it: replaces
// msync(), fsync() and posix_fadvise() in this program.
//
// A sync copies pages from the file, which is the cache, to the device. One that fails copies
// nothing, and from then on the pages that it was for count as clean, as with most file systems:
// no later sync writes them. So the cache shows them until it is told to forget what is clean, and
// then they are as the device has them. The error is reported once to each of the two open file
// descriptions by which a pool syncs: at once to that of the sync, to the other at its next one.
//
// There is one device at a time. Thread-safe, but for attach() and detach().
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace perdix::testing_files {

class Device {
 public:
  /// The file is on the device as it is.
  static void attach(const std::filesystem::path& path);

  /// All calls go to the kernel again.
  static void detach();

  /// The n-th sync from now on fails, from 1 on, and if `for_ever` all that follow; 0: none.
  static void fail(std::size_t n, bool for_ever);

  static std::size_t syncs();         ///< since fail()
  static std::size_t failed_syncs();  ///< of these

  /// What a power failure leaves of the file, put into another one.
  static void copy_to(const std::filesystem::path& path);

  /// Writes `image` when the n-th sync from now on begins, from 1 on: of each sector not synced yet
  /// the device has what it had, or what the cache has, which the kernel may write at any time.
  /// Nothing else happens then.
  static void crash_at(std::size_t n, const std::filesystem::path& image, std::uint64_t seed);

  /// Whether that sync has begun.
  static bool crashed();
};

}  // namespace perdix::testing_files
