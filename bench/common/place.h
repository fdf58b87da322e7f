// Where the files of a run lie.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace perdix::bench {

/// A directory for temporary files with at least `needed` bytes free: /dev/shm if it is a tmpfs,
/// else the system's.
std::filesystem::path default_parent(std::uint64_t needed);

/// "tmpfs", "ext4", …: the kind of file system that a path lies on.
std::string file_system_of(const std::filesystem::path& path);

/// A new directory of its own, removed with all that is in it at the end of the object's life.
class ScratchDirectory {
 public:
  /// Throws perdix::Error if it can't be created below `parent`.
  explicit ScratchDirectory(const std::filesystem::path& parent);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace perdix::bench
