// The value of a key as a returned object, for an engine that fills an object of its caller.
#pragma once

#include <optional>

namespace perdix::detail::index {

/// What engine.get(key, value) gives. Inline, see OrderedIndex::get.
template <class V, class Engine, class Key>
std::optional<V> value_of(const Engine& engine, Key key) {
  V value{};
  if (!engine.get(key, value)) return std::nullopt;
  return value;
}

}  // namespace perdix::detail::index
