// What the calls of PointIndex do.
#include "index/common/point_index.h"

#include <utility>

#include "index/common/running_change.h"
#include "pool/forks.h"

namespace perdix {

using detail::index::typed;
using detail::index::WordIndex;

template <Storable K, Storable V>
PointIndex<K, V>::PointIndex(std::unique_ptr<WordIndex<K>> words)
    : health_(&words->pool().health()), words_(words.release()) {}

template <Storable K, Storable V>
void PointIndex<K, V>::Close::operator()(WordIndex<K>* words) const noexcept {
  words->pool().health().forked() ? detail::pool::leave_to_parent(words) : delete words;
}

template <Storable K, Storable V>
template <class Call>
auto PointIndex<K, V>::run_write(Key key, Call call) {
  return run([&](WordIndex<K>& words) {
    detail::index::refuse_nested_change(&words, key);
    return call(typed<V>(words));
  });
}

template <Storable K, Storable V>
PointIndex<K, V>::~PointIndex() = default;

template <Storable K, Storable V>
PointIndex<K, V>::PointIndex(PointIndex&&) noexcept = default;

template <Storable K, Storable V>
PointIndex<K, V>& PointIndex<K, V>::operator=(PointIndex&&) noexcept = default;

template <Storable K, Storable V>
void PointIndex<K, V>::put(KeyArgument key, ValueArgument value) {
  run_write(key, [&](auto index) { index.put(key, value); });
}

template <Storable K, Storable V>
bool PointIndex<K, V>::insert(KeyArgument key, ValueArgument value) {
  return run_write(key, [&](auto index) { return index.insert(key, value); });
}

template <Storable K, Storable V>
void PointIndex<K, V>::insert_ahead(KeyArgument key, ValueArgument value) {
  run_write(key, [&](auto index) { index.insert_ahead(key, value); });
}

template <Storable K, Storable V>
bool PointIndex<K, V>::update(KeyArgument key, ValueArgument value) {
  return run_write(key, [&](auto index) { return index.update(key, value); });
}

template <Storable K, Storable V>
bool PointIndex<K, V>::erase(KeyArgument key) {
  return run_write(key, [&](auto index) { return index.erase(key); });
}

template <Storable K, Storable V>
bool PointIndex<K, V>::compare_exchange(KeyArgument key, std::optional<ValueArgument> expected,
                                        std::optional<ValueArgument> desired) {
  return run_write(key, [&](auto index) {
    if (!expected) return desired ? index.insert(key, *desired) : !index.contains(key);
    return desired ? index.update_if(key, *expected, *desired) : index.erase_if(key, *expected);
  });
}

template <Storable K, Storable V>
bool PointIndex<K, V>::get(KeyArgument key, V& value) const {
  return run([&](const WordIndex<K>& words) { return typed<V>(words).get(key, value); });
}

template <Storable K, Storable V>
bool PointIndex<K, V>::contains(KeyArgument key) const {
  return run([&](const WordIndex<K>& words) { return words.contains(key); });
}

template <Storable K, Storable V>
void PointIndex<K, V>::get_many(std::span<const Key> keys, std::span<std::optional<V>> out) const {
  run([&](const WordIndex<K>& words) { typed<V>(words).get_many(keys, out); });
}

template <Storable K, Storable V>
void PointIndex<K, V>::for_each(Visitor<K, V> visit) const {
  this->run_visits([&](const WordIndex<K>& words) { typed<V>(words).for_each(visit); });
}

template <Storable K, Storable V>
std::uint64_t PointIndex<K, V>::clear() {
  return run([](WordIndex<K>& words) {
    std::uint64_t erased = 0;
    typed<V>(words).for_each([&](Key key, Value) {
      erased += words.erase(key, nullptr) ? 1 : 0;
      return true;
    });
    return erased;
  });
}

template <Storable K, Storable V>
std::uint64_t PointIndex<K, V>::size() const {
  return run([](const WordIndex<K>& words) { return words.size(); });
}

template <Storable K, Storable V>
IndexStats PointIndex<K, V>::stats() const {
  return run([](const WordIndex<K>& words) { return words.stats(); });
}

template <Storable K, Storable V>
CheckReport PointIndex<K, V>::check() const {
  return run([](const WordIndex<K>& words) { return words.check(); });
}

template class PointIndex<std::uint64_t, std::uint64_t>;
template class PointIndex<std::uint64_t, std::string>;
template class PointIndex<std::string, std::uint64_t>;
template class PointIndex<std::string, std::string>;

}  // namespace perdix
