// Huge pages of tmpfs.
#include "pm/huge_pages.h"

#include <sys/stat.h>

#include <vector>

#include <gtest/gtest.h>

#include "pm/file.h"
#include "pm/mapping.h"
#include "pm/test_files.h"

namespace perdix::detail::pm {
namespace {

using testing_files::MountedTmpfs;
using testing_files::smaps_kib;
using testing_files::TempDirectory;

std::uint64_t allocated_bytes(const File& file) {
  struct stat status {};
  EXPECT_EQ(::fstat(file.fd(), &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

/// Whether this kernel makes huge pages of a directory's files when asked.
bool gives_huge_pages(const TempDirectory& directory) {
  File file = File::create(directory.file("probe"));
  allocate_huge_pages(file.fd(), 0, kHugePage);
  return allocated_bytes(file) == kHugePage;
}

TEST(HugePages, MakeUpAFileInMemory) {
  const TempDirectory directory(testing_files::memory_directory());
  if (!gives_huge_pages(directory)) GTEST_SKIP() << "no tmpfs, or a kernel before 6.1";
  File file = File::create(directory.file("file"));
  file.allocate(4 * kHugePage);
  const Mapping mapping(file, 4 * kHugePage, 4 * kHugePage);
  // One store in each: a fault maps a whole huge page if there is one.
  for (unsigned i = 0; i < 4; ++i) mapping.base()[i * kHugePage] = std::byte{1};
  EXPECT_EQ(smaps_kib(mapping.base(), 4 * kHugePage, "ShmemPmdMapped:"), 4 * kHugePage / 1024);
}

TEST(HugePages, AreTakenForWholeOnesOnly) {
  const TempDirectory directory(testing_files::memory_directory());
  if (!gives_huge_pages(directory)) GTEST_SKIP() << "no tmpfs, or a kernel before 6.1";
  const File file = File::create(directory.file("file"));
  allocate_huge_pages(file.fd(), 4096, 3 * kHugePage + 4096);
  EXPECT_EQ(file.size(), 3 * kHugePage + 4096);
  EXPECT_EQ(allocated_bytes(file), 2 * kHugePage);
}

TEST(HugePages, KeepTheContents) {
  const TempDirectory directory(testing_files::memory_directory());
  File file = File::create(directory.file("file"));
  std::vector<char> bytes(kHugePage + 12345);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 251 + 1);
  ASSERT_EQ(::pwrite(file.fd(), bytes.data(), bytes.size(), 0), ssize_t(bytes.size()));
  allocate_huge_pages(file.fd(), 0, kHugePage);
  EXPECT_EQ(file.size(), bytes.size()) << "it was cut off";
  allocate_huge_pages(file.fd(), 0, 3 * kHugePage);
  file.allocate(4 * kHugePage);
  std::vector<char> found(4 * kHugePage);
  ASSERT_EQ(file.read(0, found.data(), found.size()), found.size());
  bytes.resize(found.size());  // zeros behind
  EXPECT_EQ(found, bytes);
}

TEST(HugePages, NeverMoreThanTheFileSystemHas) {
  const TempDirectory directory;
  const MountedTmpfs small(directory.path(), "size=5m");
  if (!small) GTEST_SKIP() << "may not mount a tmpfs";
  File file = File::create_in_place(directory.file("file"));
  file.allocate(2 * kHugePage);
  testing_files::expect_error(Errc::out_of_space, "free some space",
                              [&] { file.allocate(8 * kHugePage); });
  EXPECT_EQ(file.size(), 2 * kHugePage);
  EXPECT_EQ(allocated_bytes(file), 2 * kHugePage);
}

}  // namespace
}  // namespace perdix::detail::pm
