#include "testing/linearizability/sparse_bytes.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "util/test_directory.h"

namespace perdix::testing {
namespace {

/// Three pages and a part of one; the second and the last byte of the third are not zero.
std::vector<std::byte> example() {
  std::vector<std::byte> bytes(3 * 4096 + 100);
  std::fill_n(bytes.begin() + 4096, 4096, std::byte{7});
  bytes[3 * 4096 - 1] = std::byte{9};
  return bytes;
}

std::vector<std::byte> content(const SparseBytes& sparse) {
  std::vector<std::byte> bytes(sparse.size(), std::byte{0xaa});
  sparse.copy_to(bytes);
  return bytes;
}

void expect_file(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(text)), bytes));
}

TEST(SparseBytes, HoldsWhatItWasMadeOf) {
  EXPECT_EQ(content(SparseBytes(example())), example());
  EXPECT_EQ(content(SparseBytes()), std::vector<std::byte>());
}

TEST(SparseBytes, ReadsPagesThatAreZeroAndOthers) {
  const SparseBytes sparse(example());
  EXPECT_EQ(sparse.read(0, 4096)[4095], std::byte{0});
  EXPECT_EQ(sparse.read(4096, 1)[0], std::byte{7});
  EXPECT_EQ(sparse.read(3 * 4096 - 2, 2)[1], std::byte{9});
}

TEST(SparseBytes, IsWrittenToAcrossPages) {
  std::vector<std::byte> bytes = example();
  SparseBytes sparse(bytes);
  const std::vector<std::byte> change(4200, std::byte{3});
  sparse.write(4096 + 4000, change);
  std::ranges::copy(change, bytes.begin() + 4096 + 4000);
  EXPECT_EQ(content(sparse), bytes);
}

TEST(SparseBytes, ACopyIsItsOwn) {
  const SparseBytes sparse(example());
  SparseBytes copy = sparse;
  copy.write(4096, std::vector<std::byte>(1, std::byte{1}));
  EXPECT_EQ(content(sparse), example());
  EXPECT_EQ(copy.read(4096, 2)[0], std::byte{1});
  EXPECT_EQ(copy.read(4096, 2)[1], std::byte{7});
}

TEST(SparseBytes, SavesAllOfIt) {
  const testing_files::TempDirectory folder;
  const auto path = folder.path() / "image";
  SparseBytes(example()).save(path);
  expect_file(path, example());
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_GE(static_cast<std::size_t>(status.st_blocks) * 512, example().size());
}

TEST(SparseBytes, SavesOverALongerFile) {
  const testing_files::TempDirectory folder;
  const auto path = folder.path() / "image";
  std::ofstream(path) << std::string(5 * 4096, 'x');
  SparseBytes(example()).save(path);
  expect_file(path, example());
}

TEST(SparseBytes, SaysWhenItCannotBeSaved) {
  const testing_files::TempDirectory folder;
  EXPECT_THROW(SparseBytes(example()).save(folder.path() / "none" / "image"), Error);
}

}  // namespace
}  // namespace perdix::testing
