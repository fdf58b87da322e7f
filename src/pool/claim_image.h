// For tests and benchmarks that open the image that a crash left of a pool in another file.
#pragma once

#include <unistd.h>

#include <filesystem>

#include "pm/file.h"
#include "pool/origin.h"
#include "pool/superblock.h"

namespace perdix::detail::pool {

/// As if the pool that the file holds an image of had been in this file, in this run of the
/// machine. Without valid superblocks nothing changes.
inline void claim_image(const std::filesystem::path& path) {
  const pm::File file = pm::File::open(path);
  const Origin here(current_boot_id(), file);
  for (const pm::Offset offset : kSuperblockOffset) {
    Superblock superblock{};
    file.read(offset, &superblock, sizeof superblock);
    if (superblock.magic != kMagic || superblock.checksum != checksum_of(superblock)) continue;
    here.store(superblock);
    superblock.checksum = checksum_of(superblock);
    (void)!::pwrite(file.fd(), &superblock, sizeof superblock, static_cast<off_t>(offset));
  }
}

}  // namespace perdix::detail::pool
