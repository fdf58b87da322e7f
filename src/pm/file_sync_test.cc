#include "pm/file_sync.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pm/journal.h"
#include "pm/mapping.h"
#include "pm/test_files.h"

namespace perdix::detail::pm {
namespace {

using testing_files::TempDirectory;

class FileSyncTest : public testing::Test {
 protected:
  FileSyncTest() {
    file_.allocate(kBytes);
    mapping_.emplace(file_, kBytes, kBytes);
  }

  std::byte* at(std::size_t offset) { return mapping_->base() + offset; }

  /// Writes `n` bytes of a value, and expects them in the file and in the mapping.
  void expect_writes(FileSync& sync, std::size_t offset, std::size_t n, int value) {
    JournalPage page;
    std::byte* const bytes = page.bytes.data();
    std::memset(bytes, value, n);
    EXPECT_EQ(sync.write(at(offset), bytes, n), 0);
    EXPECT_EQ(std::memcmp(at(offset), bytes, n), 0);
    std::vector<char> read(n);
    const File again = File::open(path_);
    EXPECT_EQ(again.read(offset, read.data(), n), n);
    EXPECT_EQ(std::memcmp(read.data(), bytes, n), 0);
  }

  /// The descriptors of the process that lead to the file.
  std::vector<int> descriptors() const {
    std::vector<int> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const int number = std::stoi(entry.path().filename());
      if (number != file_.fd() && std::filesystem::equivalent(entry.path(), path_, gone))
        found.push_back(number);
    }
    return found;
  }

  static constexpr std::size_t kBytes = std::size_t{16} << 20;

  TempDirectory directory_;
  std::filesystem::path path_ = directory_.file("pool");
  File file_ = File::create_in_place(path_);
  std::optional<Mapping> mapping_;
};

TEST_F(FileSyncTest, WritesWhatTheMappingShows) {
  FileSync sync(file_, mapping_->base(), [] { return true; });
  std::memset(at(8192), 1, 4096);  // a store to the page, which is not lost
  expect_writes(sync, 4096, 4096, 5);
  expect_writes(sync, 4096 + 512, 1024, 6);
  expect_writes(sync, 8192 + 512, 512, 7);
  EXPECT_EQ(*at(8192), std::byte{1});
  EXPECT_EQ(*at(8192 + 1024), std::byte{1});
}

TEST_F(FileSyncTest, GoesOnWhenTheProgramHasClosedItsDescriptor) {
  FileSync sync(file_, mapping_->base(), [] { return true; });
  expect_writes(sync, 4096, 512, 1);
  for (const int number : descriptors()) ::close(number);
  expect_writes(sync, 4096, 512, 2);
  const int number = file_.fd();
  ::close(number);
  expect_writes(sync, 4096, 512, 3);
}

TEST_F(FileSyncTest, LeavesTheFileThatGotTheNumberOfItsDescriptor) {
  FileSync sync(file_, mapping_->base(), [] { return true; });
  for (const int number : descriptors()) ::close(number);
  File other = File::create_in_place(directory_.file("other"));  // takes the lowest
  other.allocate(kBytes);
  expect_writes(sync, 4096, 512, 2);
  std::vector<char> bytes(512);
  other.read(4096, bytes.data(), bytes.size());
  EXPECT_EQ(bytes, std::vector<char>(512));
}

TEST_F(FileSyncTest, LeavesTheFileWhenNothingMayReachIt) {
  bool reaches_file = true;
  FileSync sync(file_, mapping_->base(), [&] { return reaches_file; });
  expect_writes(sync, 4096, 512, 1);
  mapping_->make_private();
  reaches_file = false;
  JournalPage page;
  std::memset(page.bytes.data(), 2, 512);
  EXPECT_EQ(sync.write(at(4096), page.bytes.data(), 512), 0);
  EXPECT_EQ(*at(4096), std::byte{2});
  char first = 0;
  File::open(path_).read(4096, &first, 1);
  EXPECT_EQ(first, 1);
}

TEST_F(FileSyncTest, ClosesWhatItHasOpened) {
  {
    const FileSync sync(file_, mapping_->base(), [] { return true; });
  }
  EXPECT_TRUE(descriptors().empty());
}

}  // namespace
}  // namespace perdix::detail::pm
