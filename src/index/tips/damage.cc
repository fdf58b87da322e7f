#include "index/tips/damage.h"

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::index::tips {

void throw_corrupt(const pool::PoolCore& pool, std::string_view what) {
  throw Error(Errc::corrupt, fmt::format("{}: {} of a Tips index is damaged; run `perdix check` on "
                                         "the pool",
                                         pool.path().string(), what));
}

void throw_broken(const pool::PoolCore& pool) {
  throw Error(
      Errc::out_of_space,
      fmt::format("{}: a change of a Tips index found no memory or space halfway; close the "
                  "index and open it again, which takes the change back and makes it anew",
                  pool.path().string()));
}

}  // namespace perdix::detail::index::tips
