// The public class NbTree: opens the index by name and hands every call to the engine.
#include <perdix/nbtree.h>

#include "index/nbtree/nbtree.h"
#include "pool/pool_core.h"

namespace perdix {

template <Storable K, Storable V>
NbTree<K, V>::NbTree(const Pool& pool, std::string_view name, const IndexOptions& options)
    : tree_(std::make_unique<index::nbtree::Tree<K, V>>(
          pool.core()->open_index(name, index::nbtree::kEngineName, kKindOf<K>, kKindOf<V>),
          options)) {}

template <Storable K, Storable V>
NbTree<K, V>::~NbTree() = default;

template <Storable K, Storable V>
NbTree<K, V>::NbTree(NbTree&&) noexcept = default;

template <Storable K, Storable V>
NbTree<K, V>& NbTree<K, V>::operator=(NbTree&&) noexcept = default;

template <Storable K, Storable V>
void NbTree<K, V>::put(Key key, Value value) {
  tree_->put(key, value);
}

template <Storable K, Storable V>
bool NbTree<K, V>::insert(Key key, Value value) {
  return tree_->insert(key, value);
}

template <Storable K, Storable V>
bool NbTree<K, V>::update(Key key, Value value) {
  return tree_->update(key, value);
}

template <Storable K, Storable V>
bool NbTree<K, V>::erase(Key key) {
  return tree_->erase(key);
}

template <Storable K, Storable V>
std::optional<V> NbTree<K, V>::get(Key key) const {
  return tree_->get(key);
}

template <Storable K, Storable V>
bool NbTree<K, V>::contains(Key key) const {
  return tree_->contains(key);
}

template <Storable K, Storable V>
void NbTree<K, V>::get_many(std::span<const Key> keys, std::span<std::optional<V>> out) const {
  tree_->get_many(keys, out);
}

template <Storable K, Storable V>
void NbTree<K, V>::scan(Key from, Visitor<K, V> visit) const {
  tree_->scan(from, visit);
}

template <Storable K, Storable V>
std::vector<std::pair<K, V>> NbTree<K, V>::scan(Key from, std::size_t limit) const {
  std::vector<std::pair<K, V>> pairs;
  if (limit == 0) return pairs;
  tree_->scan(from, [&](Key key, Value value) {
    pairs.emplace_back(key, value);
    return pairs.size() < limit;
  });
  return pairs;
}

template <Storable K, Storable V>
std::uint64_t NbTree<K, V>::size() const {
  return tree_->size();
}

template <Storable K, Storable V>
IndexStats NbTree<K, V>::stats() const {
  return tree_->stats();
}

template <Storable K, Storable V>
CheckReport NbTree<K, V>::check() const {
  return tree_->check();
}

template class NbTree<std::uint64_t, std::uint64_t>;
template class NbTree<std::uint64_t, std::string>;
template class NbTree<std::string, std::uint64_t>;
template class NbTree<std::string, std::string>;

}  // namespace perdix
