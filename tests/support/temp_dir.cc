#include "support/temp_dir.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>

#include "support/settings.h"

namespace perdix::test {
namespace {

namespace fs = std::filesystem;

// Enough for two concurrent suites with pools of some hundred MiB; containers often have 64 MiB.
constexpr std::uintmax_t kEnoughMemory = std::uintmax_t{1} << 30;

fs::path memory_folder() {
  if (const char* chosen = std::getenv("PERDIX_TEST_DIR")) return chosen;
  const fs::path memory = "/dev/shm";
  std::error_code error;
  const fs::space_info space = fs::space(memory, error);
  const bool usable =
      !error && space.available >= kEnoughMemory && ::access(memory.c_str(), W_OK | X_OK) == 0;
  return usable ? memory : fs::temp_directory_path();
}

fs::path folder_for(Domain domain) {
  const fs::path disk = disk_folder();
  return domain == Domain::page_cache && !disk.empty() ? disk : memory_folder();
}

}  // namespace

TempDir::TempDir(Domain domain) {
  std::string pattern = (folder_for(domain) / "perdix-test-XXXXXX").string();
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
