#include "index/common/batch.h"

#include "pool/checked.h"

namespace perdix::detail::index {

void throw_unordered(const pool::PoolCore& pool) {
  pool::throw_damaged(pool, "a leaf has keys that are out of order, twice there or of another leaf",
                      pool::kCheck);
}

}  // namespace perdix::detail::index
