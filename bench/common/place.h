// The directories of a run's files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace perdix::bench {

/// Returns a directory for temporary files with at least `needed` free bytes: /dev/shm if it is a
/// tmpfs, otherwise the system's temporary directory.
std::filesystem::path default_parent(std::uint64_t needed);

/// "tmpfs", "ext4", …: the kind of file system that a path lies on.
std::string file_system_of(const std::filesystem::path& path);

/// Bytes that the block device below a path has been told to write since it is there, by all
/// programs. Empty if the path lies on none (tmpfs, overlayfs).
std::optional<std::uint64_t> device_bytes_written(const std::filesystem::path& path);

/// A new directory. The destructor removes it and its content.
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
