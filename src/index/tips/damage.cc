#include "index/tips/damage.h"

#include <fmt/format.h>

#include <perdix/error.h>

#include "pool/checked.h"

namespace perdix::detail::index::tips {

void throw_damaged_part(const pool::PoolCore& pool, std::string_view part) {
  pool::throw_damaged(pool, fmt::format("{} of a Tips index is damaged", part), pool::kCheck);
}

void throw_broken(const pool::PoolCore& pool, bool foreign_memory) {
  if (foreign_memory) {
    throw Error(
        Errc::invalid_argument,
        fmt::format("{}: the plug-in of a Tips index has freed or changed memory that is not of "
                    "the pool; correct the plug-in, close the index and open it again, which takes "
                    "this change back. If the index leads to such memory since an earlier change, "
                    "it is damaged then: drop it",
                    pool.path().string()));
  }
  throw Error(
      Errc::out_of_space,
      fmt::format("{}: a change of a Tips index found no memory or space halfway; close the "
                  "index and open it again, which takes the change back and makes it anew",
                  pool.path().string()));
}

void throw_strange(std::string_view plugin) {
  throw Error(Errc::invalid_argument,
              fmt::format("the plug-in '{}' of Tips has thrown something that is no "
                          "std::exception; correct it: put() and erase() may throw std::bad_alloc "
                          "and what tips::allocate() throws, other calls nothing",
                          plugin));
}

}  // namespace perdix::detail::index::tips
