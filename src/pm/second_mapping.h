// A second mapping of a pool's file, by an open file description of its own, to sync pages beside
// the threads that sync by the first one. The kernel reports an error of the file once to each
// description: so each of two syncs at the same time, by different descriptions, is told of every
// error. No page is read or stored to by this mapping, and no descriptor is kept for it.
//
// A child of fork() does not inherit it. One thread at a time calls sync().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pm/file.h"
#include "pm/sync_device.h"

namespace perdix::detail::pm {

class SecondMapping final : public SyncDevice {
 public:
  /// `base`: where the file is mapped first. Null if the file can't be opened or mapped once more:
  /// /proc is missing, the process may not open it any more, or a limit is reached.
  static std::unique_ptr<SecondMapping> create(const File& file, const std::byte* base);

  ~SecondMapping() override;
  SecondMapping(const SecondMapping&) = delete;
  SecondMapping& operator=(const SecondMapping&) = delete;

  /// `begin` lies in the first mapping. ENOMEM: the mapping can't grow so far; nothing was synced.
  int sync(void* begin, std::size_t bytes) noexcept override;

 private:
  SecondMapping(const std::byte* base, void* address, std::size_t size) noexcept
      : base_(base), address_(static_cast<std::byte*>(address)), size_(size) {}

  const std::byte* const base_;
  std::byte* address_;
  std::size_t size_;
};

}  // namespace perdix::detail::pm
