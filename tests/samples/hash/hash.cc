#include "samples/hash/hash.h"

#include <type_traits>
#include <vector>

#include "index/common/limits.h"
#include "index/common/open_words.h"
#include "index/common/pairs_engine.h"
#include "index/common/retry.h"
#include "pool/as_errors.h"

namespace perdix::samples {

namespace hash {

using detail::index::Bytes;
using detail::index::Mode;
using detail::index::NewValue;

template <class K>
std::string Table<K>::bytes_of(NewValue value) const {
  if (info().value_kind == Kind::bytes) return std::string(value.bytes());
  return Bytes<std::uint64_t>::encode(value.word());
}

template <class K>
bool Table<K>::write(Key key, NewValue value, Mode mode, const NewValue* expected) {
  detail::index::check_key(key);
  return detail::index::retry_when_full(pool(), [&] {  // which waits, so without the lock
    const std::lock_guard guard(lock_);
    std::string_view found;
    const bool there = slots_.find(Bytes<K>::encode(key), found);
    if (there ? mode == Mode::insert : mode == Mode::update) return false;
    if (there && expected != nullptr && found != bytes_of(*expected)) return false;
    slots_.set(Bytes<K>::encode(key), bytes_of(value));
    return true;
  });
}

template <class K>
bool Table<K>::erase(Key key, const NewValue* expected) {
  const std::lock_guard guard(lock_);
  std::string_view found;
  if (!slots_.find(Bytes<K>::encode(key), found)) return false;
  if (expected != nullptr && found != bytes_of(*expected)) return false;
  return slots_.erase(Bytes<K>::encode(key));
}

template <class K>
void Table<K>::for_each(const detail::index::PairSink<K>& show) const {
  std::vector<detail::index::CopiedPair<K>> pairs;
  std::string bytes;
  detail::pool::as_errors(pool(), [&] {
    const std::lock_guard guard(lock_);
    pairs.reserve(slots_.pairs());
    slots_.for_each([&](std::string_view key, std::string_view value) {
      const bool number = info().value_kind == Kind::u64;
      pairs.push_back({Bytes<K>::decode(key), number ? decode_u64(value) : value.size()});
      if (std::is_same_v<K, std::string>) bytes += key;
      if (!number) bytes += value;
    });
    pool().require_usable();  // what was read may have been there before a sync failed
  });
  (void)show({pairs, bytes.data()});
}

template <class K>
IndexStats Table<K>::stats() const {
  const std::lock_guard guard(lock_);
  IndexStats stats;
  stats.pairs = slots_.pairs();
  stats.leaves = 1;
  stats.pm_bytes = slots_.pm_bytes();
  stats.dram_bytes = sizeof *this;
  return stats;
}

template class Table<std::uint64_t>;
template class Table<std::string>;

const detail::index::EngineType kEngine =
    detail::index::pairs_engine<Table, kOptions>(kEngineName, {});

}  // namespace hash

template <Storable K, Storable V>
SampleHash<K, V>::SampleHash(const Pool& pool, std::string_view name,
                             const SampleHashOptions& options)
    : PointIndex<K, V>(detail::index::open_words<hash::Table<K>, hash::kOptions, K>(
          pool, name, hash::kEngineName, kKindOf<V>, options)) {}

template class SampleHash<std::uint64_t, std::uint64_t>;
template class SampleHash<std::uint64_t, std::string>;
template class SampleHash<std::string, std::uint64_t>;
template class SampleHash<std::string, std::string>;

}  // namespace perdix::samples
