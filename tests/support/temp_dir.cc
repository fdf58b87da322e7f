#include "support/temp_dir.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>

#include "support/settings.h"
#include "util/test_directory.h"

namespace perdix::test {
namespace {

namespace fs = std::filesystem;

fs::path folder_for(Domain domain) {
  const fs::path disk = disk_folder();
  return domain == Domain::page_cache && !disk.empty() ? disk : testing_files::memory_directory();
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
