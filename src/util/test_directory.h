// Directories that vanish with their owner, for tests and test programs.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace perdix::testing_files {

/// A new directory that is removed with all that it holds.
class TempDirectory {
 public:
  explicit TempDirectory(
      const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "perdix-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed in " + name);
    path_ = name;
  }
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A directory in memory where there is one, else any.
inline std::filesystem::path memory_directory() {
  const std::filesystem::path shm = "/dev/shm";
  return ::access(shm.c_str(), W_OK) == 0 ? shm : std::filesystem::temp_directory_path();
}

}  // namespace perdix::testing_files
