// Scans beside writers, by orders that several threads make, keep and outdate concurrently.
#include "index/common/test_scans.h"
#include "index/sptree/test_scan_tree.h"

namespace perdix::detail::index::sptree {
namespace {

template <class K>
class SpTreeScanStress : public testing::Test {};

using KeyTypes = ::testing::Types<std::uint64_t, std::string>;
TYPED_TEST_SUITE(SpTreeScanStress, KeyTypes);

TYPED_TEST(SpTreeScanStress, ScansBesideWritersShowExactlyWhatStays) {
  for (const std::uint64_t buffers : kScanBudgets) {
    ScanTree<TypeParam> tree(buffers);
    scan_beside_writers<TypeParam>(tree, 30'000);
    tree.expect_sound_pool();
  }
}

}  // namespace
}  // namespace perdix::detail::index::sptree
