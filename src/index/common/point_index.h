// What the calls of PointIndex do. Included by the api.cc of each engine, which instantiates it.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include <perdix/point_index.h>

#include "index/common/running_change.h"
#include "pool/forks.h"
#include "pool/pool_core.h"
#include "pool/run_call.h"

namespace perdix {

template <class Engine, Storable K, Storable V>
PointIndex<Engine, K, V>::PointIndex(std::unique_ptr<Engine> engine)
    : health_(&engine->pool().health()), engine_(engine.release()) {}

template <class Engine, Storable K, Storable V>
void PointIndex<Engine, K, V>::Close::operator()(Engine* engine) const noexcept {
  engine->pool().health().forked() ? detail::pool::leave_to_parent(engine) : delete engine;
}

template <class Engine, Storable K, Storable V>
template <class Call>
auto PointIndex<Engine, K, V>::run(Call call) const {
  return detail::pool::run_call(*health_, *engine_, call);
}

template <class Engine, Storable K, Storable V>
template <class Call>
auto PointIndex<Engine, K, V>::run_write(Key key, Call call) {
  return run([&](Engine& engine) {
    detail::index::refuse_nested_change(&engine, key);
    return call(engine);
  });
}

template <class Engine, Storable K, Storable V>
PointIndex<Engine, K, V>::~PointIndex() = default;

template <class Engine, Storable K, Storable V>
PointIndex<Engine, K, V>::PointIndex(PointIndex&&) noexcept = default;

template <class Engine, Storable K, Storable V>
PointIndex<Engine, K, V>& PointIndex<Engine, K, V>::operator=(PointIndex&&) noexcept = default;

template <class Engine, Storable K, Storable V>
void PointIndex<Engine, K, V>::put(KeyArgument key, ValueArgument value) {
  run_write(key, [&](Engine& engine) { engine.put(key, value); });
}

template <class Engine, Storable K, Storable V>
bool PointIndex<Engine, K, V>::insert(KeyArgument key, ValueArgument value) {
  return run_write(key, [&](Engine& engine) { return engine.insert(key, value); });
}

template <class Engine, Storable K, Storable V>
bool PointIndex<Engine, K, V>::update(KeyArgument key, ValueArgument value) {
  return run_write(key, [&](Engine& engine) { return engine.update(key, value); });
}

template <class Engine, Storable K, Storable V>
bool PointIndex<Engine, K, V>::erase(KeyArgument key) {
  return run_write(key, [&](Engine& engine) { return engine.erase(key); });
}

template <class Engine, Storable K, Storable V>
bool PointIndex<Engine, K, V>::compare_exchange(KeyArgument key,
                                                std::optional<ValueArgument> expected,
                                                std::optional<ValueArgument> desired) {
  return run_write(key, [&](Engine& engine) {
    if (!expected) return desired ? engine.insert(key, *desired) : !engine.contains(key);
    return desired ? engine.update_if(key, *expected, *desired) : engine.erase_if(key, *expected);
  });
}

template <class Engine, Storable K, Storable V>
bool PointIndex<Engine, K, V>::get(KeyArgument key, V& value) const {
  return run([&](const Engine& engine) { return engine.get(key, value); });
}

template <class Engine, Storable K, Storable V>
bool PointIndex<Engine, K, V>::contains(KeyArgument key) const {
  return run([&](const Engine& engine) { return engine.contains(key); });
}

template <class Engine, Storable K, Storable V>
void PointIndex<Engine, K, V>::get_many(std::span<const Key> keys,
                                        std::span<std::optional<V>> out) const {
  run([&](const Engine& engine) { engine.get_many(keys, out); });
}

template <class Engine, Storable K, Storable V>
template <class Call>
void PointIndex<Engine, K, V>::run_visits(Call call) const {
  run([](const Engine&) {});
  call(*engine_);
  run([](const Engine&) {});
}

template <class Engine, Storable K, Storable V>
void PointIndex<Engine, K, V>::for_each(Visitor<K, V> visit) const {
  run_visits([&](const Engine& engine) { engine.for_each(std::as_const(visit)); });
}

template <class Engine, Storable K, Storable V>
std::uint64_t PointIndex<Engine, K, V>::clear() {
  return run([](Engine& engine) {
    std::uint64_t erased = 0;
    engine.for_each([&](Key key, Value) {
      erased += engine.erase(key) ? 1 : 0;
      return true;
    });
    return erased;
  });
}

template <class Engine, Storable K, Storable V>
std::uint64_t PointIndex<Engine, K, V>::size() const {
  return run([](const Engine& engine) { return engine.size(); });
}

template <class Engine, Storable K, Storable V>
IndexStats PointIndex<Engine, K, V>::stats() const {
  return run([](const Engine& engine) { return engine.stats(); });
}

template <class Engine, Storable K, Storable V>
CheckReport PointIndex<Engine, K, V>::check() const {
  return run([](const Engine& engine) { return engine.check(); });
}

}  // namespace perdix
