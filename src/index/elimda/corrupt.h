// What is thrown where a word of the pool can't be what it should be.
#pragma once

#include <string_view>

#include <fmt/format.h>
#include <perdix/error.h>

#include "pm/offset.h"
#include "pool/pool_core.h"

namespace perdix::index::elimda {

[[noreturn]] inline void throw_corrupt(const pool::PoolCore& pool, std::string_view what,
                                       pm::Offset offset) {
  throw Error(Errc::corrupt, fmt::format("{}: an ElimDa index has {} at offset {:#x} that can't be "
                                         "one; run `perdix check` on the pool",
                                         pool.path().string(), what, offset));
}

}  // namespace perdix::index::elimda
