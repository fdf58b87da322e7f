#include "index/tips_of/damage.h"

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::index::tips_of {

void throw_corrupt(const pool::PoolCore& pool, std::string_view what) {
  throw Error(Errc::corrupt, fmt::format("{}: {} of a TipsOf index is damaged; run `perdix check` "
                                         "on the pool",
                                         pool.path().string(), what));
}

}  // namespace perdix::detail::index::tips_of
