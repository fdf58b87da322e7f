#include "index/tips_of/damage.h"

#include <fmt/format.h>

#include "pool/checked.h"

namespace perdix::detail::index::tips_of {

void throw_damaged_part(const pool::PoolCore& pool, std::string_view part) {
  pool::throw_damaged(pool, fmt::format("{} of a TipsOf index is damaged", part), pool::kCheck);
}

}  // namespace perdix::detail::index::tips_of
