// What the calls of OrderedIndex do. Included by the api.cc of each ordered engine, which
// instantiates it.
#pragma once

#include <perdix/ordered_index.h>

#include <memory>
#include <utility>

#include "index/common/point_index.h"

namespace perdix {

template <class Engine, Storable K, Storable V>
OrderedIndex<Engine, K, V>::OrderedIndex(std::unique_ptr<Engine> engine)
    : PointIndex<Engine, K, V>(std::move(engine)) {}

template <class Engine, Storable K, Storable V>
void OrderedIndex<Engine, K, V>::scan(Key from, Visitor<K, V> visit) const {
  this->run_visits([&](const Engine& engine) { engine.scan(from, std::as_const(visit)); });
}

template <class Engine, Storable K, Storable V>
std::vector<std::pair<K, V>> OrderedIndex<Engine, K, V>::scan(Key from, std::size_t limit) const {
  return this->run([&](const Engine& engine) {
    std::vector<std::pair<K, V>> pairs;
    const auto keep = [&](Key key, Value value) { return pairs.emplace_back(key, value), true; };
    engine.scan(from, keep, limit);
    return pairs;
  });
}

}  // namespace perdix
