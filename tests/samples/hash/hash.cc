#include "samples/hash/hash.h"

#include "index/common/limits.h"
#include "index/common/open_or_remove.h"
#include "index/common/point_index.h"
#include "pool/as_errors.h"

namespace perdix::samples {

namespace hash {

template <class K, class V>
Table<K, V>::Table(detail::pool::IndexHandle handle, const IndexOptions&)
    : handle_(std::move(handle)), slots_(handle_.pool(), handle_.root()) {}

template <class K, class V>
template <class Wants>
bool Table<K, V>::write(Key key, Value value, Wants wants) {
  detail::index::check_key(key);
  detail::index::check_value(value);
  return detail::index::retry_when_full(pool(), [&] {  // which waits, so without the lock
    const std::lock_guard guard(lock_);
    std::string_view bytes;
    const bool there = slots_.find(detail::index::Bytes<K>::encode(key), bytes);
    const Value found = there ? Value(detail::index::Bytes<V>::decode(bytes)) : Value();
    if (!wants(there ? &found : nullptr)) return false;
    slots_.set(detail::index::Bytes<K>::encode(key), detail::index::Bytes<V>::encode(value));
    return true;
  });
}

template <class K, class V>
template <class Wants>
bool Table<K, V>::erase(Key key, Wants wants) {
  const std::lock_guard guard(lock_);
  std::string_view bytes;
  if (!slots_.find(detail::index::Bytes<K>::encode(key), bytes)) return false;
  const Value found = detail::index::Bytes<V>::decode(bytes);
  return wants(&found) && slots_.erase(detail::index::Bytes<K>::encode(key));
}

template <class K, class V>
void Table<K, V>::for_each(Visitor<K, V> visit) const {
  std::vector<std::pair<K, V>> pairs;
  detail::pool::as_errors(pool(), [&] {
    const std::lock_guard guard(lock_);
    pairs.reserve(slots_.pairs());
    slots_.for_each([&](std::string_view key, std::string_view value) {
      pairs.emplace_back(detail::index::Bytes<K>::decode(key),
                         detail::index::Bytes<V>::decode(value));
    });
    pool().require_usable();  // what was read may have been there before a sync failed
  });
  for (const auto& [key, value] : pairs) {
    if (!visit(key, value)) return;
    detail::pool::as_errors(
        [&] { pool().require_usable(); });  // in a child that the visitor forked
  }
}

template <class K, class V>
IndexStats Table<K, V>::stats() const {
  const std::lock_guard guard(lock_);
  IndexStats stats;
  stats.pairs = slots_.pairs();
  stats.leaves = 1;
  stats.pm_bytes = slots_.pm_bytes();
  stats.dram_bytes = sizeof *this;
  return stats;
}

}  // namespace hash

template <Storable K, Storable V>
SampleHash<K, V>::SampleHash(const Pool& pool, std::string_view name)
    : PointIndex<hash::Table<K, V>, K, V>(
          detail::index::open_typed<hash::Table<K, V>, K, V>(pool, name, hash::kEngineName, {})) {}

template class hash::Table<std::uint64_t, std::uint64_t>;
template class hash::Table<std::uint64_t, std::string>;
template class hash::Table<std::string, std::uint64_t>;
template class hash::Table<std::string, std::string>;

}  // namespace perdix::samples

namespace perdix {

template class PointIndex<samples::hash::Table<std::uint64_t, std::uint64_t>, std::uint64_t,
                          std::uint64_t>;
template class PointIndex<samples::hash::Table<std::uint64_t, std::string>, std::uint64_t,
                          std::string>;
template class PointIndex<samples::hash::Table<std::string, std::uint64_t>, std::string,
                          std::uint64_t>;
template class PointIndex<samples::hash::Table<std::string, std::string>, std::string, std::string>;

}  // namespace perdix

namespace perdix::samples {

template class SampleHash<std::uint64_t, std::uint64_t>;
template class SampleHash<std::uint64_t, std::string>;
template class SampleHash<std::string, std::uint64_t>;
template class SampleHash<std::string, std::string>;

}  // namespace perdix::samples
