// Opening an index so that a failure changes nothing: an index that this call has created, and
// whose engine then can't be opened, for example in a full pool, is removed again.
#pragma once

#include <cstdint>
#include <exception>
#include <string_view>
#include <utility>

#include <perdix/pool.h>

#include "pool/pool_core.h"

namespace perdix::index {

/// Removes an index that is new. It needs no space: what the engine has made of it is freed, and
/// the entry of the directory is overwritten. If even that fails, the index stays hidden and the
/// next opening of the pool goes on; if another thread has opened the index by now, it is that
/// one's.
template <class Destroy>
void remove_new(pool::PoolCore& pool, std::string_view name, const Destroy& destroy) noexcept {
  try {
    pool::IndexHandle handle = pool.begin_drop(name);
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
  pool::IndexHandle handle =
      pool.open_index(info.name, info.engine, info.key_kind, info.value_kind);
  const bool created = handle.created();
  try {
    return open(std::move(handle));
  } catch (...) {
    if (created) remove_new(pool, info.name, destroy);
    throw;
  }
}

}  // namespace perdix::index
