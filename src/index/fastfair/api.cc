// The public class FastFair: opens the index by name and hands every call to the engine.
#include <perdix/fastfair.h>

#include "index/fastfair/fastfair.h"
#include "pool/pool_core.h"

namespace perdix {

template <Storable K, Storable V>
FastFair<K, V>::FastFair(const Pool& pool, std::string_view name)
    : tree_(std::make_unique<index::fastfair::Tree<K, V>>(
          pool.core()->open_index(name, index::fastfair::kEngineName, kKindOf<K>, kKindOf<V>))) {}

template <Storable K, Storable V>
FastFair<K, V>::~FastFair() = default;

template <Storable K, Storable V>
FastFair<K, V>::FastFair(FastFair&&) noexcept = default;

template <Storable K, Storable V>
FastFair<K, V>& FastFair<K, V>::operator=(FastFair&&) noexcept = default;

template <Storable K, Storable V>
void FastFair<K, V>::put(Key key, Value value) {
  tree_->put(key, value);
}

template <Storable K, Storable V>
bool FastFair<K, V>::insert(Key key, Value value) {
  return tree_->insert(key, value);
}

template <Storable K, Storable V>
bool FastFair<K, V>::update(Key key, Value value) {
  return tree_->update(key, value);
}

template <Storable K, Storable V>
bool FastFair<K, V>::erase(Key key) {
  return tree_->erase(key);
}

template <Storable K, Storable V>
std::optional<V> FastFair<K, V>::get(Key key) const {
  return tree_->get(key);
}

template <Storable K, Storable V>
bool FastFair<K, V>::contains(Key key) const {
  return tree_->contains(key);
}

template <Storable K, Storable V>
void FastFair<K, V>::get_many(std::span<const Key> keys, std::span<std::optional<V>> out) const {
  tree_->get_many(keys, out);
}

template <Storable K, Storable V>
void FastFair<K, V>::scan(Key from, Visitor<K, V> visit) const {
  tree_->scan(from, visit);
}

template <Storable K, Storable V>
std::vector<std::pair<K, V>> FastFair<K, V>::scan(Key from, std::size_t limit) const {
  std::vector<std::pair<K, V>> pairs;
  if (limit == 0) return pairs;
  tree_->scan(from, [&](Key key, Value value) {
    pairs.emplace_back(key, value);
    return pairs.size() < limit;
  });
  return pairs;
}

template <Storable K, Storable V>
std::uint64_t FastFair<K, V>::size() const {
  return tree_->size();
}

template <Storable K, Storable V>
IndexStats FastFair<K, V>::stats() const {
  return tree_->stats();
}

template <Storable K, Storable V>
CheckReport FastFair<K, V>::check() const {
  return tree_->check();
}

template class FastFair<std::uint64_t, std::uint64_t>;
template class FastFair<std::uint64_t, std::string>;
template class FastFair<std::string, std::uint64_t>;
template class FastFair<std::string, std::string>;

}  // namespace perdix
