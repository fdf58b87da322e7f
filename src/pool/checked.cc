#include "pool/checked.h"

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::pool {

void throw_corrupt(const PoolCore& pool, std::string_view what, pm::Offset offset) {
  throw Error(Errc::corrupt,
              fmt::format("{}: an index has {} at offset {:#x}, where none is that could be there; "
                          "restore the pool from a copy",
                          pool.path().string(), what, offset));
}

}  // namespace perdix::detail::pool
