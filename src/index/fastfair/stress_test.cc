// Many threads in trees with small nodes, so that splits, merges and new roots meet on all levels.
#include <gtest/gtest.h>

#include "index/common/test_crew.h"
#include "index/fastfair/test_tree.h"

namespace perdix::detail::index::fastfair {
namespace {

constexpr unsigned kFanout = 4;

TEST(FastFairStress, Numbers) {
  Crew<TestTree<std::uint64_t, std::uint64_t>, std::uint64_t>(kFanout).run();
}
TEST(FastFairStress, Strings) {
  Crew<TestTree<std::string, std::uint64_t>, std::string>(kFanout).run();
}

}  // namespace
}  // namespace perdix::detail::index::fastfair
