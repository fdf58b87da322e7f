#include "common/place.h"

#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::bench {
namespace {

constexpr std::uint32_t kXfsMagic = 0x58465342;  // the kernel's headers for programs leave it out

bool fits_in_memory_file_system(const char* path, std::uint64_t needed) {
  struct statfs facts {};
  return ::statfs(path, &facts) == 0 && static_cast<std::uint32_t>(facts.f_type) == TMPFS_MAGIC &&
         facts.f_bavail * static_cast<std::uint64_t>(facts.f_bsize) >= needed &&
         ::access(path, W_OK) == 0;
}

}  // namespace

std::filesystem::path default_parent(std::uint64_t needed) {
  constexpr const char* kSharedMemory = "/dev/shm";
  if (fits_in_memory_file_system(kSharedMemory, needed)) return kSharedMemory;
  return std::filesystem::temp_directory_path();
}

std::string file_system_of(const std::filesystem::path& path) {
  struct statfs facts {};
  if (::statfs(path.c_str(), &facts) != 0) return "unknown";
  switch (static_cast<std::uint32_t>(facts.f_type)) {
    case TMPFS_MAGIC: return "tmpfs";
    case EXT4_SUPER_MAGIC: return "ext4";
    case kXfsMagic: return "xfs";
    case BTRFS_SUPER_MAGIC: return "btrfs";
    case OVERLAYFS_SUPER_MAGIC: return "overlayfs";
    default: return fmt::format("type {:#x}", static_cast<std::uint32_t>(facts.f_type));
  }
}

std::optional<std::uint64_t> device_bytes_written(const std::filesystem::path& path) {
  constexpr std::uint64_t kSector = 512;
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  // Reads, merged reads, sectors read, time; writes, merged writes, sectors written.
  std::ifstream file(
      fmt::format("/sys/dev/block/{}:{}/stat", major(facts.st_dev), minor(facts.st_dev)));
  std::uint64_t field = 0;
  for (int i = 0; i < 7; ++i)
    if (!(file >> field)) return std::nullopt;
  return field * kSector;
}

ScratchDirectory::ScratchDirectory(const std::filesystem::path& parent) {
  std::string name = (parent / "perdix-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw Error(Errc::io_error,
                fmt::format("can't create a directory in {}: {}; name another one with --pool-dir",
                            parent.string(), std::strerror(errno)));
  }
  path_ = name;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;  // a leftover file is no reason to end the program
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace perdix::bench
