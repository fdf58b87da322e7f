// The cached path of FastFair.
#include <memory>

#include "index/common/test_shortcuts.h"
#include "index/fastfair/test_tree.h"

namespace perdix::detail::index {
namespace {

struct MakeFastFair {
  template <class K>
  static auto index(const FastFairOptions& options) {
    return std::make_unique<fastfair::TestTree<K, std::uint64_t>>(4, options);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(FastFair, Shortcut, MakeFastFair);

}  // namespace
}  // namespace perdix::detail::index
