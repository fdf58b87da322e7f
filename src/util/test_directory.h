// Directories that vanish with their owner, for tests and test programs.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

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

/// The folder for what should lie in memory: PERDIX_TEST_DIR if that is set, a tmpfs where it has
/// room, else that for temporary files.
inline std::filesystem::path memory_directory() {
  // For two concurrent suites with pools of some hundred MiB; containers often have 64 MiB.
  constexpr std::uintmax_t kEnough = std::uintmax_t{1} << 30;
  if (const char* chosen = std::getenv("PERDIX_TEST_DIR")) return chosen;
  const std::filesystem::path shm = "/dev/shm";
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(shm, error);
  const bool usable =
      !error && space.available >= kEnough && ::access(shm.c_str(), W_OK | X_OK) == 0;
  return usable ? shm : std::filesystem::temp_directory_path();
}

}  // namespace perdix::testing_files
