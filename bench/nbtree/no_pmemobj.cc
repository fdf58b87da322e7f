// Where libpmemobj is not installed.
#include "nbtree/providers.h"

namespace perdix::bench::figures {

std::unique_ptr<Provider> pmemobj_provider(const std::filesystem::path&, std::uint64_t,
                                           std::size_t) {
  return nullptr;
}

}  // namespace perdix::bench::figures
