// Many threads in trees with small nodes, so that splits, merges and new roots meet on all levels.
#include <gtest/gtest.h>

#include "index/common/test_stress.h"
#include "index/fastfair/test_tree.h"

namespace perdix::detail::index::fastfair {
namespace {

constexpr unsigned kFanout = 4;

TEST(FastFairStress, Numbers) {
  StressRun<TestTree<std::uint64_t, std::uint64_t>, std::uint64_t>(kFanout).run();
}
TEST(FastFairStress, Strings) {
  StressRun<TestTree<std::string, std::uint64_t>, std::string>(kFanout).run();
}

/// Buffers for some leaves, which change hands.
void run_with_buffers(Technique technique) {
  const FastFairOptions options{.dram_budget = 12'000, .technique = technique};
  StressRun<TestTree<std::uint64_t, std::uint64_t>, std::uint64_t>(kFanout, options).run();
  StressRun<TestTree<std::string, std::uint64_t>, std::string>(2 * kFanout, options).run();
}

TEST(FastFairStress, MergesInPlace) { run_with_buffers(Technique::b); }
TEST(FastFairStress, MergesOutOfPlace) { run_with_buffers(Technique::bo); }

constexpr FastFairOptions kCached{.dram_budget = kUnlimited, .technique = Technique::boc};

TEST(FastFairStress, NumbersByTheCachedPath) {
  StressRun<TestTree<std::uint64_t, std::uint64_t>, std::uint64_t>(kFanout, kCached).run();
}
TEST(FastFairStress, StringsByTheCachedPath) {
  StressRun<TestTree<std::string, std::uint64_t>, std::string>(kFanout, kCached).run();
}

}  // namespace
}  // namespace perdix::detail::index::fastfair
