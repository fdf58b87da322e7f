// Opening an index so that a failure changes nothing: an index that this call has created, and
// whose engine then can't be opened, for example in a full pool, is removed again.
#pragma once

#include <cstdint>
#include <exception>
#include <utility>

#include <perdix/types.h>

#include "pool/pool_core.h"

namespace perdix::detail::index {

/// Removes an index that is new. It needs neither space nor memory: the blocks that the engine has
/// made for it are freed, and the entry of the directory is overwritten. What can't be freed stays
/// hidden, and the next opening of the pool goes on.
template <class Destroy>
void remove_new(pool::IndexHandle handle, const Destroy& destroy) noexcept {
  pool::PoolCore& pool = handle.pool();
  try {
    pool.begin_drop(handle);
    destroy(handle.root());
    pool.finish_drop(std::move(handle));
  } catch (const std::exception&) {  // the caller has an error to report already
  }
}

/// Returns open(handle) of an index, which is created if there is none of that name.
/// `destroy(root)` frees what a failed open() has left behind a root. Throws as
/// PoolCore::open_index() and open().
template <class Destroy, class Open>
decltype(auto) open_or_remove(pool::PoolCore& pool, const IndexInfo& info, const Destroy& destroy,
                              const Open& open) {
  pool::IndexHandle handle = pool.open_index(info);
  if (!handle.created()) return open(std::move(handle));
  pool::IndexHandle mine = pool.another(handle);  // no other thread opens it before it is removed
  try {
    return open(std::move(handle));
  } catch (...) {
    remove_new(std::move(mine), destroy);
    throw;
  }
}

}  // namespace perdix::detail::index
