// What the heap finds of a pool that was there before it was opened.
#include <vector>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "alloc/calloc.h"
#include "alloc/test_space.h"

namespace perdix::detail::alloc {
namespace {

constexpr std::uint64_t kBytes = 4 * kChunkSize;

/// Allocates until there is no more space, and frees all of it. How many blocks that were.
std::size_t how_many(Calloc& calloc, std::size_t bytes) {
  std::vector<Offset> blocks;
  try {
    for (;;) blocks.push_back(allocate(calloc, bytes));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::out_of_space);
  }
  for (const Offset block : blocks) deallocate(calloc, block);
  calloc.reclaim();
  return blocks.size();
}

// Blocks, runs of spans, and chunks.
TEST(HeapDiscovery, EarlierFreedSpaceServesAllSizes) {
  TestSpace space(kBytes);
  Calloc::format(space);
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{30'000}, std::size_t{100'000},
                                  std::size_t{14 * kMiB}, std::size_t{40 * kMiB}}) {
    std::size_t known = 0;
    {
      Calloc calloc(space);
      known = how_many(calloc, bytes);
      how_many(calloc, 1120);
    }
    Calloc reopened(space);
    EXPECT_EQ(how_many(reopened, bytes), known) << bytes;
  }
}

}  // namespace
}  // namespace perdix::detail::alloc
