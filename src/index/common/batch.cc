#include "index/common/batch.h"

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::index {

void throw_unordered(const pool::PoolCore& pool) {
  throw Error(Errc::corrupt,
              fmt::format("{}: a leaf has keys that are out of order, twice there or of another "
                          "leaf; run `perdix check` on the pool",
                          pool.path().string()));
}

}  // namespace perdix::detail::index
