// What the calls of OrderedIndex do. Included by the api.cc of each ordered engine, which
// instantiates it.
#pragma once

#include <memory>
#include <utility>

#include <perdix/ordered_index.h>

#include "index/common/neighbour.h"
#include "index/common/point_index.h"
#include "index/common/read_beyond.h"

namespace perdix {

namespace detail::index {

/// Erases the keys from `from` on for which `inside` is true. Returns how many.
template <class Engine, class Key, class Inside>
std::uint64_t erase_from(Engine& engine, Key from, Inside inside) {
  std::uint64_t erased = 0;
  const auto erase = [&](Key key, auto) {
    if (!inside(key)) return false;
    erased += engine.erase(key) ? 1 : 0;
    return true;
  };
  engine.scan(from, erase);
  return erased;
}

}  // namespace detail::index

template <class Engine, Storable K, Storable V>
OrderedIndex<Engine, K, V>::OrderedIndex(std::unique_ptr<Engine> engine)
    : PointIndex<Engine, K, V>(std::move(engine)) {}

template <class Engine, Storable K, Storable V>
void OrderedIndex<Engine, K, V>::scan(KeyArgument from, Visitor<K, V> visit) const {
  this->run_visits([&](const Engine& engine) { engine.scan(from, std::as_const(visit)); });
}

template <class Engine, Storable K, Storable V>
std::vector<std::pair<K, V>> OrderedIndex<Engine, K, V>::scan(KeyArgument from,
                                                              std::size_t limit) const {
  return this->run([&](const Engine& engine) {
    std::vector<std::pair<K, V>> pairs;
    const auto keep = [&](Key key, Value value) { return pairs.emplace_back(key, value), true; };
    engine.scan(from, keep, limit);
    return pairs;
  });
}

template <class Engine, Storable K, Storable V>
auto OrderedIndex<Engine, K, V>::lower_bound(KeyArgument key) const -> std::optional<Pair> {
  return this->run([&](const Engine& engine) {
    std::optional<Pair> found;
    const auto keep = [&](Key first, Value value) { return found.emplace(first, value), false; };
    engine.scan(key, keep, 1);
    return found;
  });
}

template <class Engine, Storable K, Storable V>
auto OrderedIndex<Engine, K, V>::floor(KeyArgument key) const -> std::optional<Pair> {
  return this->run([&](const Engine& engine) { return engine.find_floor(key); });
}

template <class Engine, Storable K, Storable V>
auto OrderedIndex<Engine, K, V>::after(KeyArgument key) const -> std::optional<Pair> {
  const auto next = this->run([&](const Engine&) { return detail::index::successor(Key(key)); });
  return next ? lower_bound(*next) : std::nullopt;
}

template <class Engine, Storable K, Storable V>
auto OrderedIndex<Engine, K, V>::before(KeyArgument key) const -> std::optional<Pair> {
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
std::size_t OrderedIndex<Engine, K, V>::read_beyond(KeyArgument key, Direction direction,
                                                    std::size_t limit,
                                                    std::vector<Pair>& pairs) const {
  return this->run([&](const Engine& engine) {
    using namespace detail::index;
    return direction == Direction::up ? read_above<Engine, K, V>(engine, key, limit, pairs)
                                      : read_below<Engine, K, V>(engine, key, limit, pairs);
  });
}

template <class Engine, Storable K, Storable V>
std::uint64_t OrderedIndex<Engine, K, V>::erase_range(KeyArgument from, KeyArgument to) {
  return this->run([&](Engine& engine) {
    return detail::index::erase_from(engine, Key(from), [&](Key key) { return key < to; });
  });
}

template <class Engine, Storable K, Storable V>
std::uint64_t OrderedIndex<Engine, K, V>::erase_range(KeyArgument from) {
  return this->run([&](Engine& engine) {
    return detail::index::erase_from(engine, Key(from), [](Key) { return true; });
  });
}

}  // namespace perdix
