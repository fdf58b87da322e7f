// Makes pages of a mapped file durable. The kernel, but for tests, which simulate a disk.
#pragma once

#include <cstddef>

namespace perdix::detail::pm {

/// Syncs whole pages.
inline constexpr std::size_t kSyncPage = 4096;

class SyncDevice {
 public:
  virtual ~SyncDevice() = default;

  /// Waits until the pages of [begin, begin + bytes), page-aligned, are on the device. Returns 0 or
  /// an errno.
  virtual int sync(void* begin, std::size_t bytes) noexcept = 0;
};

/// msync with MS_SYNC, of data and of the metadata that reading it back needs.
class KernelSync final : public SyncDevice {
 public:
  int sync(void* begin, std::size_t bytes) noexcept override;
};

}  // namespace perdix::detail::pm
