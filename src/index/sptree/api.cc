// The public class SpTree: opens the index by name and hands every call to the engine.
#include <perdix/sptree.h>

#include "index/sptree/sptree.h"
#include "pool/pool_core.h"

namespace perdix {

template <Storable K, Storable V>
SpTree<K, V>::SpTree(const Pool& pool, std::string_view name)
    : tree_(std::make_unique<index::sptree::Tree<K, V>>(
          pool.core()->open_index(name, index::sptree::kEngineName, kKindOf<K>, kKindOf<V>))) {}

template <Storable K, Storable V>
SpTree<K, V>::~SpTree() = default;

template <Storable K, Storable V>
SpTree<K, V>::SpTree(SpTree&&) noexcept = default;

template <Storable K, Storable V>
SpTree<K, V>& SpTree<K, V>::operator=(SpTree&&) noexcept = default;

template <Storable K, Storable V>
void SpTree<K, V>::put(Key key, Value value) {
  tree_->put(key, value);
}

template <Storable K, Storable V>
bool SpTree<K, V>::insert(Key key, Value value) {
  return tree_->insert(key, value);
}

template <Storable K, Storable V>
bool SpTree<K, V>::update(Key key, Value value) {
  return tree_->update(key, value);
}

template <Storable K, Storable V>
bool SpTree<K, V>::erase(Key key) {
  return tree_->erase(key);
}

template <Storable K, Storable V>
std::optional<V> SpTree<K, V>::get(Key key) const {
  return tree_->get(key);
}

template <Storable K, Storable V>
bool SpTree<K, V>::contains(Key key) const {
  return tree_->contains(key);
}

template <Storable K, Storable V>
void SpTree<K, V>::get_many(std::span<const Key> keys, std::span<std::optional<V>> out) const {
  tree_->get_many(keys, out);
}

template <Storable K, Storable V>
void SpTree<K, V>::scan(Key from, Visitor<K, V> visit) const {
  tree_->scan(from, visit);
}

template <Storable K, Storable V>
std::vector<std::pair<K, V>> SpTree<K, V>::scan(Key from, std::size_t limit) const {
  std::vector<std::pair<K, V>> pairs;
  if (limit == 0) return pairs;
  tree_->scan(from, [&](Key key, Value value) {
    pairs.emplace_back(key, value);
    return pairs.size() < limit;
  });
  return pairs;
}

template <Storable K, Storable V>
std::uint64_t SpTree<K, V>::size() const {
  return tree_->size();
}

template <Storable K, Storable V>
IndexStats SpTree<K, V>::stats() const {
  return tree_->stats();
}

template <Storable K, Storable V>
CheckReport SpTree<K, V>::check() const {
  return tree_->check();
}

template class SpTree<std::uint64_t, std::uint64_t>;
template class SpTree<std::uint64_t, std::string>;
template class SpTree<std::string, std::uint64_t>;
template class SpTree<std::string, std::string>;

}  // namespace perdix
