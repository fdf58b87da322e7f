// Notices that the pool's file was deleted or replaced: the server would go on in a file that the
// next start does not find.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

namespace perdix::valkey {

class PoolFile {
 public:
  /// Remembers the file that the path leads to now. Later changes of the working directory are no
  /// concern.
  explicit PoolFile(const std::filesystem::path& path) : path_(std::filesystem::absolute(path)) {
    look(opened_);
  }

  const std::filesystem::path& path() const noexcept { return path_; }

  /// Whether the path leads to another file or to none. False if the system does not say.
  bool is_lost() const {
    struct stat now {};
    if (!look(now)) return errno == ENOENT || errno == ENOTDIR;
    return now.st_dev != opened_.st_dev || now.st_ino != opened_.st_ino;
  }

 private:
  bool look(struct stat& file) const { return ::stat(path_.c_str(), &file) == 0; }

  std::filesystem::path path_;
  struct stat opened_ {};
};

}  // namespace perdix::valkey
