// Where libpmemobj is not installed.
#include "special/nbtree/providers.h"

namespace perdix::bench::figures {

std::unique_ptr<Provider> pmemobj_provider(const std::filesystem::path&, Capacity) {
  return nullptr;
}

}  // namespace perdix::bench::figures
