#include "index/tips/damage.h"

#include <fmt/format.h>

#include <perdix/error.h>

#include "pool/checked.h"

namespace perdix::detail::index::tips {

void throw_damaged_part(const pool::PoolCore& pool, std::string_view part) {
  pool::throw_damaged(pool, fmt::format("{} of a Tips index is damaged", part), pool::kCheck);
}

void throw_broken(const pool::PoolCore& pool) {
  throw Error(
      Errc::out_of_space,
      fmt::format("{}: a change of a Tips index found no memory or space halfway; close the "
                  "index and open it again, which takes the change back and makes it anew",
                  pool.path().string()));
}

}  // namespace perdix::detail::index::tips
