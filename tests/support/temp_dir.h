// A folder for pools that exists as long as the object: in memory if there is room, on a disk for
// the page_cache domain if the environment names one (settings.h).
#pragma once

#include <filesystem>

#include "support/domain.h"

namespace perdix::test {

class TempDir {
 public:
  explicit TempDir(Domain domain);
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Leaves the folder where it is, for a failure to be looked at.
  void keep() { keep_ = true; }

 private:
  std::filesystem::path path_;
  bool keep_ = false;
};

}  // namespace perdix::test
