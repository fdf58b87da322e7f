// Where a pool was opened: in which run of the machine, and as which file. An unclean pool that is
// found elsewhere may lack stores of its last run: the machine went down under a `process` pool, or
// the file was copied while its owner wrote.
//
// A file is known by its inode, time of birth and device. The kernel numbers devices as they come:
// a volume that is mounted again, or the overlay of a container that is started again, may have
// another number in the same run. There the id of the file system takes the place of the device. A
// snapshot of the volume has the same id, but stands beside it: a file is another one while the
// file system of before is still mounted.
//
// The run is known by the kernel's random boot id. Where that can't be read (no /proc, a sandbox)
// an inode of a tmpfs serves instead. Such an inode exists in the kernel's memory only, so finding
// it again proves that the kernel has not restarted. Another inode is not mistaken for it, since
// the kernel gives each a random number of 32 bits, which is part of its file handle (Linux 4.20;
// older kernels give the time). Clocks prove nothing: a clock without a battery starts at the same
// time in every run.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pm/file.h"
#include "pool/layout.h"

namespace perdix::detail::pool {

using BootId = std::array<std::uint8_t, 16>;

/// The kernel's random boot id; all zeros where the kernel doesn't tell. Needs a descriptor for a
/// moment.
BootId current_boot_id();

/// True if both are known and equal.
bool same_boot(const BootId& a, const BootId& b) noexcept;

/// 16 random bytes that identify a pool.
std::array<std::uint8_t, 16> random_uuid();

class Origin {
 public:
  /// This run of the machine, and an open file.
  Origin(const BootId& boot, const pm::File& file);

  /// Where a superblock says that the pool was opened last: in this run? As this file?
  bool same_run(const Superblock& superblock) const;
  bool same_file(const Superblock& superblock) const;

  void store(Superblock& superblock) const;

 private:
  BootId boot_;
  std::vector<std::uint64_t> witnesses_;  // of the run; the first of them is stored
  pm::FileId file_;
  std::uint32_t file_system_;  // 0: it has no id
};

}  // namespace perdix::detail::pool
