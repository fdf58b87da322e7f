// What the calls of OrderedIndex do. Included by the api.cc of each engine, which instantiates it.
#pragma once

#include <perdix/ordered_index.h>

#include <memory>
#include <utility>

namespace perdix {

template <class Engine, Storable K, Storable V>
OrderedIndex<Engine, K, V>::OrderedIndex(std::unique_ptr<Engine> engine)
    : engine_(std::move(engine)) {}

template <class Engine, Storable K, Storable V>
OrderedIndex<Engine, K, V>::~OrderedIndex() = default;

template <class Engine, Storable K, Storable V>
OrderedIndex<Engine, K, V>::OrderedIndex(OrderedIndex&&) noexcept = default;

template <class Engine, Storable K, Storable V>
OrderedIndex<Engine, K, V>& OrderedIndex<Engine, K, V>::operator=(OrderedIndex&&) noexcept =
    default;

template <class Engine, Storable K, Storable V>
void OrderedIndex<Engine, K, V>::put(Key key, Value value) {
  engine_->put(key, value);
}

template <class Engine, Storable K, Storable V>
bool OrderedIndex<Engine, K, V>::insert(Key key, Value value) {
  return engine_->insert(key, value);
}

template <class Engine, Storable K, Storable V>
bool OrderedIndex<Engine, K, V>::update(Key key, Value value) {
  return engine_->update(key, value);
}

template <class Engine, Storable K, Storable V>
bool OrderedIndex<Engine, K, V>::erase(Key key) {
  return engine_->erase(key);
}

template <class Engine, Storable K, Storable V>
bool OrderedIndex<Engine, K, V>::get(Key key, V& value) const {
  return engine_->get(key, value);
}

template <class Engine, Storable K, Storable V>
bool OrderedIndex<Engine, K, V>::contains(Key key) const {
  return engine_->contains(key);
}

template <class Engine, Storable K, Storable V>
void OrderedIndex<Engine, K, V>::get_many(std::span<const Key> keys,
                                          std::span<std::optional<V>> out) const {
  engine_->get_many(keys, out);
}

template <class Engine, Storable K, Storable V>
void OrderedIndex<Engine, K, V>::scan(Key from, Visitor<K, V> visit) const {
  engine_->scan(from, visit);
}

template <class Engine, Storable K, Storable V>
std::vector<std::pair<K, V>> OrderedIndex<Engine, K, V>::scan(Key from, std::size_t limit) const {
  std::vector<std::pair<K, V>> pairs;
  const auto keep = [&](Key key, Value value) { return pairs.emplace_back(key, value), true; };
  engine_->scan(from, keep, limit);
  return pairs;
}

template <class Engine, Storable K, Storable V>
std::uint64_t OrderedIndex<Engine, K, V>::size() const {
  return engine_->size();
}

template <class Engine, Storable K, Storable V>
IndexStats OrderedIndex<Engine, K, V>::stats() const {
  return engine_->stats();
}

template <class Engine, Storable K, Storable V>
CheckReport OrderedIndex<Engine, K, V>::check() const {
  return engine_->check();
}

}  // namespace perdix
