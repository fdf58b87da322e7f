#include "support/temp_dir.h"

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>

namespace perdix::test {
namespace {

namespace fs = std::filesystem;

// Room for two suites at once whose pools grow to some hundred MiB; containers often have 64 MiB.
constexpr std::uintmax_t kEnoughMemory = std::uintmax_t{1} << 30;

bool on_disk(const fs::path& path) {
  struct statfs info;
  return ::statfs(path.c_str(), &info) == 0 &&
         static_cast<std::uint64_t>(info.f_type) != static_cast<std::uint64_t>(TMPFS_MAGIC);
}

fs::path memory_folder() {
  if (const char* chosen = std::getenv("PERDIX_TEST_DIR")) return chosen;
  const fs::path memory = "/dev/shm";
  std::error_code error;
  const fs::space_info space = fs::space(memory, error);
  const bool usable =
      !error && space.available >= kEnoughMemory && ::access(memory.c_str(), W_OK | X_OK) == 0;
  return usable ? memory : fs::temp_directory_path();
}

fs::path disk_folder() {
  if (const char* chosen = std::getenv("PERDIX_TEST_DISK")) return chosen;
  const fs::path temporary = fs::temp_directory_path();
  return on_disk(temporary) ? temporary : fs::current_path();
}

}  // namespace

TempDir::TempDir(Domain domain) {
  const fs::path parent = domain == Domain::page_cache ? disk_folder() : memory_folder();
  std::string pattern = (parent / "perdix-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp " + pattern);
  }
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;  // a folder that is left behind fails no test
  if (!keep_) fs::remove_all(path_, ignored);
}

}  // namespace perdix::test
