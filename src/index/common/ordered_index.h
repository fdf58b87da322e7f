// What the calls of OrderedIndex do. Included by the api.cc of each ordered engine, which
// instantiates it.
#pragma once

#include <memory>
#include <utility>

#include <perdix/ordered_index.h>

#include "index/common/neighbour.h"
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

template <class Engine, Storable K, Storable V>
auto OrderedIndex<Engine, K, V>::lower_bound(Key key) const -> std::optional<Pair> {
  return this->run([&](const Engine& engine) {
    std::optional<Pair> found;
    const auto keep = [&](Key first, Value value) { return found.emplace(first, value), false; };
    engine.scan(key, keep, 1);
    return found;
  });
}

template <class Engine, Storable K, Storable V>
auto OrderedIndex<Engine, K, V>::floor(Key key) const -> std::optional<Pair> {
  return this->run([&](const Engine& engine) { return engine.find_floor(key); });
}

template <class Engine, Storable K, Storable V>
auto OrderedIndex<Engine, K, V>::after(Key key) const -> std::optional<Pair> {
  const auto next = this->run([&](const Engine&) { return detail::index::successor(key); });
  return next ? lower_bound(*next) : std::nullopt;
}

template <class Engine, Storable K, Storable V>
auto OrderedIndex<Engine, K, V>::before(Key key) const -> std::optional<Pair> {
  return this->run([&](const Engine& engine) { return engine.find_below(key); });
}

template <class Engine, Storable K, Storable V>
auto OrderedIndex<Engine, K, V>::first() const -> std::optional<Pair> {
  return lower_bound(Key{});
}

template <class Engine, Storable K, Storable V>
auto OrderedIndex<Engine, K, V>::last() const -> std::optional<Pair> {
  return this->run(
      [&](const Engine& engine) { return engine.find_floor(detail::index::greatest_key<K>()); });
}

template <class Engine, Storable K, Storable V>
std::uint64_t OrderedIndex<Engine, K, V>::erase_range(Key from, Key to) {
  return this->run([&](Engine& engine) {
    std::uint64_t erased = 0;
    const auto erase = [&](Key key, Value) {
      if (!(key < to)) return false;
      erased += engine.erase(key) ? 1 : 0;
      return true;
    };
    engine.scan(from, erase);
    return erased;
  });
}

}  // namespace perdix
