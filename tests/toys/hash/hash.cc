#include "toys/hash/hash.h"

#include "index/common/limits.h"
#include "index/common/open_or_remove.h"
#include "index/common/point_index.h"
#include "pool/as_errors.h"

namespace perdix::toys {

namespace hash {

template <class K, class V>
Table<K, V>::Table(pool::IndexHandle handle, const IndexOptions&)
    : handle_(std::move(handle)), slots_(handle_.pool(), handle_.root()) {}

template <class K, class V>
template <class Wants>
bool Table<K, V>::write(Key key, Value value, Wants wants) {
  index::check_key(key);
  index::check_value(value);
  return index::retry_when_full(pool(), [&] {  // which waits, so without the lock
    const std::lock_guard guard(lock_);
    std::string_view bytes;
    const bool there = slots_.find(index::Bytes<K>::encode(key), bytes);
    const Value found = there ? Value(index::Bytes<V>::decode(bytes)) : Value();
    if (!wants(there ? &found : nullptr)) return false;
    slots_.set(index::Bytes<K>::encode(key), index::Bytes<V>::encode(value));
    return true;
  });
}

template <class K, class V>
template <class Wants>
bool Table<K, V>::erase(Key key, Wants wants) {
  const std::lock_guard guard(lock_);
  std::string_view bytes;
  if (!slots_.find(index::Bytes<K>::encode(key), bytes)) return false;
  const Value found = index::Bytes<V>::decode(bytes);
  return wants(&found) && slots_.erase(index::Bytes<K>::encode(key));
}

template <class K, class V>
void Table<K, V>::for_each(Visitor<K, V> visit) const {
  std::vector<std::pair<K, V>> pairs;
  pool::as_errors([&] {
    const std::shared_lock guard(lock_);
    pairs.reserve(slots_.pairs());
    slots_.for_each([&](std::string_view key, std::string_view value) {
      pairs.emplace_back(index::Bytes<K>::decode(key), index::Bytes<V>::decode(value));
    });
    pool().require_usable();  // what was read may have been there before a sync failed
  });
  for (const auto& [key, value] : pairs) {
    if (!visit(key, value)) return;
    pool::as_errors([&] { pool().require_usable(); });  // in a child that the visitor forked
  }
}

template <class K, class V>
IndexStats Table<K, V>::stats() const {
  const std::shared_lock guard(lock_);
  IndexStats stats;
  stats.pairs = slots_.pairs();
  stats.leaves = 1;
  stats.pm_bytes = slots_.pm_bytes();
  stats.dram_bytes = sizeof *this;
  return stats;
}

}  // namespace hash

template <Storable K, Storable V>
ToyHash<K, V>::ToyHash(const Pool& pool, std::string_view name)
    : PointIndex<hash::Table<K, V>, K, V>(
          index::open_typed<hash::Table<K, V>, K, V>(pool, name, hash::kEngineName, {})) {}

template class hash::Table<std::uint64_t, std::uint64_t>;
template class hash::Table<std::uint64_t, std::string>;
template class hash::Table<std::string, std::uint64_t>;
template class hash::Table<std::string, std::string>;

}  // namespace perdix::toys

namespace perdix {

template class PointIndex<toys::hash::Table<std::uint64_t, std::uint64_t>, std::uint64_t,
                          std::uint64_t>;
template class PointIndex<toys::hash::Table<std::uint64_t, std::string>, std::uint64_t,
                          std::string>;
template class PointIndex<toys::hash::Table<std::string, std::uint64_t>, std::string,
                          std::uint64_t>;
template class PointIndex<toys::hash::Table<std::string, std::string>, std::string, std::string>;

}  // namespace perdix

namespace perdix::toys {

template class ToyHash<std::uint64_t, std::uint64_t>;
template class ToyHash<std::uint64_t, std::string>;
template class ToyHash<std::string, std::uint64_t>;
template class ToyHash<std::string, std::string>;

}  // namespace perdix::toys
