// The cached path of SkipList.
#include <memory>

#include "index/common/test_shortcuts.h"
#include "index/skiplist/test_list.h"

namespace perdix::detail::index {
namespace {

struct MakeSkipList {
  template <class K>
  static auto index(const SkipListOptions& options) {
    return std::make_unique<skiplist::TestList<K, std::uint64_t>>(options);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(SkipList, Shortcut, MakeSkipList);

}  // namespace
}  // namespace perdix::detail::index
