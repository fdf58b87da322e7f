#include "pool/checked.h"

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::pool {

void throw_damaged(const PoolCore& pool, std::string_view finding, std::string_view remedy) {
  throw Error(Errc::corrupt, fmt::format("{}: {}; {}", pool.path().string(), finding, remedy));
}

void throw_corrupt(const PoolCore& pool, std::string_view what, pm::Offset offset) {
  throw_damaged(pool, fmt::format("an index has {} at offset {:#x}, where none is that could be "
                                  "there",
                                  what, offset));
}

}  // namespace perdix::detail::pool
