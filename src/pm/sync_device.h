// Makes pages of a mapped file durable. The kernel, but for tests, which simulate a disk.
#pragma once

#include <cstddef>

namespace perdix::detail::pm {

/// Syncs whole pages.
inline constexpr std::size_t kSyncPage = 4096;

/// The unit of SyncDevice::write().
inline constexpr std::size_t kSyncSector = 512;

class SyncDevice {
 public:
  virtual ~SyncDevice() = default;

  /// Waits until the pages of [begin, begin + bytes), page-aligned, are on the device. Returns 0 or
  /// an errno.
  virtual int sync(void* begin, std::size_t bytes) noexcept = 0;

  /// Writes [from, from + bytes) to `to`, and waits until it is on the device; a crash leaves any
  /// sectors of it. Both places and `bytes` are multiples of kSyncSector. Returns 0 or an errno.
  /// Here: stores to the mapping, and syncs its pages.
  virtual int write(void* to, const std::byte* from, std::size_t bytes) noexcept;
};

/// msync with MS_SYNC, of data and of the metadata that reading it back needs.
class KernelSync : public SyncDevice {
 public:
  int sync(void* begin, std::size_t bytes) noexcept override;
};

}  // namespace perdix::detail::pm
