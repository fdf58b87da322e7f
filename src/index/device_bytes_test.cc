// What the device of a pool on a disk has to write for a put that survives power failures.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/pool.h>
#include <perdix/sptree.h>

#include "pm/file.h"
#include "pm/test_files.h"

namespace perdix {
namespace {

namespace fs = std::filesystem;
using testing_files::TempDirectory;
using Tree = SpTree<std::uint64_t, std::uint64_t>;

/// Of a pool that is filled fast, and of one that syncs each put.
constexpr std::uint64_t kMany = 200'000, kFew = 2'000;

/// Bytes that this process has had the kernel write to devices, or will have; none where the kernel
/// does not count them.
std::optional<std::uint64_t> device_bytes() {
  std::ifstream counters("/proc/self/io");
  for (std::string name; counters >> name;) {
    std::uint64_t value = 0;
    counters >> value;
    if (name == "write_bytes:") return value;
  }
  return std::nullopt;
}

std::uint64_t nth_key(std::uint64_t i) { return i * 0x9e3779b97f4a7c15; }

/// As cp or dd does, with large writes.
void copy_in_large_pieces(const fs::path& from, const fs::path& to) {
  std::ifstream in(from, std::ios::binary);
  std::ofstream out(to, std::ios::binary);
  for (std::vector<char> piece(4 << 20);
       in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0;)
    out.write(piece.data(), in.gcount());
  ASSERT_TRUE(out.good());
}

class DeviceBytes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!device_bytes()) GTEST_SKIP() << "the kernel does not count what a process writes";
    if (detail::pm::File::create(directory_.file("probe")).in_memory())
      GTEST_SKIP() << "temporary files are in memory";
  }

  void fill(Durability durability, std::uint64_t keys) {
    PoolOptions options;
    options.durability = durability;
    Pool pool = Pool::create(path_, options);
    Tree tree(pool, "t");
    for (std::uint64_t i = 0; i < keys; ++i) tree.put(nth_key(i), i);
  }

  /// Of each put of many, after all pages of the index have been read.
  static double bytes_of_put(const fs::path& path) {
    constexpr std::uint64_t kPuts = 2000;
    PoolOptions options;
    options.durability = Durability::power;
    Pool pool = Pool::open(path, options);
    Tree tree(pool, "t");
    EXPECT_EQ(tree.check().problems.size(), 0u);
    const std::uint64_t keys = tree.size(), before = *device_bytes();
    for (std::uint64_t i = 0; i < kPuts; ++i) tree.put(nth_key(i * 7919 % keys), i);
    return static_cast<double>(*device_bytes() - before) / kPuts;
  }

  TempDirectory directory_;
  const fs::path path_ = directory_.file("pool");
};

TEST_F(DeviceBytes, OfAPutAreTwoPages) {
  fill(Durability::power, kFew);
  EXPECT_LE(bytes_of_put(path_), 8192);
}

TEST_F(DeviceBytes, OfAPutAreTwoPagesInAPoolThatWasFilledUnderProcess) {
  fill(Durability::process, kMany);
  EXPECT_LE(bytes_of_put(path_), 8192);
}

TEST_F(DeviceBytes, OfAPutAreTwoPagesInAPoolThatWasCopied) {
  fill(Durability::process, kMany);
  const fs::path copy = directory_.file("copy");
  copy_in_large_pieces(path_, copy);
  EXPECT_LE(bytes_of_put(copy), 8192);
}

}  // namespace
}  // namespace perdix
