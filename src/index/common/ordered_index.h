// What the calls of OrderedIndex do. Included by the api.cc of each engine, which instantiates it.
#pragma once

#include <perdix/ordered_index.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "pool/as_errors.h"
#include "pool/forks.h"
#include "pool/pool_core.h"

namespace perdix {

template <class Engine, Storable K, Storable V>
OrderedIndex<Engine, K, V>::OrderedIndex(std::unique_ptr<Engine> engine)
    : health_(&engine->pool().health()), engine_(engine.release()) {}

template <class Engine, Storable K, Storable V>
void OrderedIndex<Engine, K, V>::Close::operator()(Engine* engine) const noexcept {
  engine->pool().health().forked() ? pool::leave_to_parent(engine) : delete engine;
}

/// Before an engine is called, and before what it found is returned: by then a sync may have failed
/// of what was read.
template <class Engine, Storable K, Storable V>
void OrderedIndex<Engine, K, V>::require_usable() const {
  if (!health_->usable()) [[unlikely]]
    engine_->pool().require_usable();
}

template <class Engine, Storable K, Storable V>
template <class Call>
auto OrderedIndex<Engine, K, V>::run(Call call) const {
  return pool::as_errors([&] {
    require_usable();
    if constexpr (std::is_void_v<decltype(call(*engine_))>) {
      call(*engine_);
      require_usable();
    } else {
      auto result = call(*engine_);
      require_usable();
      return result;
    }
  });
}

template <class Engine, Storable K, Storable V>
OrderedIndex<Engine, K, V>::~OrderedIndex() = default;

template <class Engine, Storable K, Storable V>
OrderedIndex<Engine, K, V>::OrderedIndex(OrderedIndex&&) noexcept = default;

template <class Engine, Storable K, Storable V>
OrderedIndex<Engine, K, V>& OrderedIndex<Engine, K, V>::operator=(OrderedIndex&&) noexcept =
    default;

template <class Engine, Storable K, Storable V>
void OrderedIndex<Engine, K, V>::put(Key key, Value value) {
  run([&](Engine& engine) { engine.put(key, value); });
}

template <class Engine, Storable K, Storable V>
bool OrderedIndex<Engine, K, V>::insert(Key key, Value value) {
  return run([&](Engine& engine) { return engine.insert(key, value); });
}

template <class Engine, Storable K, Storable V>
bool OrderedIndex<Engine, K, V>::update(Key key, Value value) {
  return run([&](Engine& engine) { return engine.update(key, value); });
}

template <class Engine, Storable K, Storable V>
bool OrderedIndex<Engine, K, V>::erase(Key key) {
  return run([&](Engine& engine) { return engine.erase(key); });
}

template <class Engine, Storable K, Storable V>
bool OrderedIndex<Engine, K, V>::get(Key key, V& value) const {
  return run([&](const Engine& engine) { return engine.get(key, value); });
}

template <class Engine, Storable K, Storable V>
bool OrderedIndex<Engine, K, V>::contains(Key key) const {
  return run([&](const Engine& engine) { return engine.contains(key); });
}

template <class Engine, Storable K, Storable V>
void OrderedIndex<Engine, K, V>::get_many(std::span<const Key> keys,
                                          std::span<std::optional<V>> out) const {
  run([&](const Engine& engine) { engine.get_many(keys, out); });
}

/// The visitor's exceptions are its caller's, so only the engine knows which ones to translate
/// (scan_by_batches). It also looks at the pool on its way: before it shows what it has read, since
/// a sync of that may have failed, and after each visit, since in a child that the visitor forked
/// the scan must not go on.
template <class Engine, Storable K, Storable V>
void OrderedIndex<Engine, K, V>::scan(Key from, Visitor<K, V> visit) const {
  run([](const Engine&) {});
  engine_->scan(from, visit);
  run([](const Engine&) {});
}

template <class Engine, Storable K, Storable V>
std::vector<std::pair<K, V>> OrderedIndex<Engine, K, V>::scan(Key from, std::size_t limit) const {
  return run([&](const Engine& engine) {
    std::vector<std::pair<K, V>> pairs;
    const auto keep = [&](Key key, Value value) { return pairs.emplace_back(key, value), true; };
    engine.scan(from, keep, limit);
    return pairs;
  });
}

template <class Engine, Storable K, Storable V>
std::uint64_t OrderedIndex<Engine, K, V>::size() const {
  return run([](const Engine& engine) { return engine.size(); });
}

template <class Engine, Storable K, Storable V>
IndexStats OrderedIndex<Engine, K, V>::stats() const {
  return run([](const Engine& engine) { return engine.stats(); });
}

template <class Engine, Storable K, Storable V>
CheckReport OrderedIndex<Engine, K, V>::check() const {
  return run([](const Engine& engine) { return engine.check(); });
}

}  // namespace perdix
