// The second mapping of a file, by which pages are synced and nothing else is done.
#include "pm/second_mapping.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "pm/mapping.h"
#include "pm/test_files.h"

namespace perdix::detail::pm {
namespace {

constexpr std::uint64_t kFirstSize = Mapping::kAlignment;
constexpr std::uint64_t kMaxSize = 64 * Mapping::kAlignment;

/// How many mappings of a file this process has that no access is allowed to.
int mappings_without_access(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) != std::string::npos && line.find(" ---s ") != std::string::npos) ++count;
  }
  return count;
}

class SecondMappingOf : public ::testing::Test {
 protected:
  SecondMappingOf() { file_.allocate(kFirstSize); }

  testing_files::TempDirectory directory_;
  std::filesystem::path path_ = directory_.file("mapped");
  File file_ = File::create_in_place(path_);
};

TEST_F(SecondMappingOf, SyncsPagesThatTheFirstOneStoresTo) {
  const Mapping mapping(file_, kFirstSize, kMaxSize);
  const auto second = SecondMapping::create(file_, mapping.base());
  ASSERT_NE(second, nullptr);
  mapping.base()[5 * kSyncPage] = std::byte{7};
  EXPECT_EQ(second->sync(mapping.base() + 5 * kSyncPage, kSyncPage), 0);
}

TEST_F(SecondMappingOf, ReachesWhatTheFileHasGrownBy) {
  Mapping mapping(file_, kFirstSize, kMaxSize);
  const auto second = SecondMapping::create(file_, mapping.base());
  ASSERT_NE(second, nullptr);
  file_.allocate(kMaxSize);
  mapping.grow(kMaxSize);
  EXPECT_EQ(second->sync(mapping.base() + kMaxSize - kSyncPage, kSyncPage), 0);
  EXPECT_EQ(second->sync(mapping.base(), kMaxSize), 0);
  EXPECT_EQ(mappings_without_access(path_.string()), 1);
}

TEST_F(SecondMappingOf, KeepsNoDescriptorAndNoMappingBehindItsEnd) {
  const Mapping mapping(file_, kFirstSize, kMaxSize);
  const int free = ::dup(0);
  ::close(free);
  {
    const auto second = SecondMapping::create(file_, mapping.base());
    const int still_free = ::dup(0);
    ::close(still_free);
    EXPECT_EQ(free, still_free);
    EXPECT_EQ(mappings_without_access(path_.string()), 1);
  }
  EXPECT_EQ(mappings_without_access(path_.string()), 0);
}

TEST_F(SecondMappingOf, IsNotThereInAChild) {
  const Mapping mapping(file_, kFirstSize, kMaxSize);
  const auto second = SecondMapping::create(file_, mapping.base());
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(mappings_without_access(path_.string()));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace perdix::detail::pm
