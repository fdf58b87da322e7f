// Makes a Plugin of an index class.
#pragma once

#include <concepts>
#include <cstddef>
#include <new>
#include <string_view>

#include "index/tips/plugin.h"

namespace perdix::detail::index::tips {

/// An index whose keys have an order.
template <class Index>
concept OrderedIndexClass = requires(const Index& index, const Word* from, ShowPair show) {
  index.scan(from, nullptr, show);
};

template <class Index>
constexpr Plugin plugin_of(std::string_view name) {
  Plugin plugin{};
  plugin.name = name;
  plugin.ordered = OrderedIndexClass<Index>;
  plugin.object_bytes = sizeof(Index);
  plugin.put_takes = Index::put_takes();
  plugin.create = [](void* index) { new (index) Index(); };
  plugin.renew_locks = [](void* index) { static_cast<Index*>(index)->renew_locks(); };
  plugin.put = [](void* index, Word key, Word value, Word* old) {
    return static_cast<Index*>(index)->put(key, value, *old);
  };
  plugin.erase = [](void* index, Word key, Word* old_key, Word* old_value) {
    return static_cast<Index*>(index)->erase(key, *old_key, *old_value);
  };
  plugin.find = [](const void* index, Word key, Word* value) {
    return static_cast<const Index*>(index)->find(key, *value);
  };
  plugin.find_doubting = [](const void* index, const Doubting& doubt, Word key, Word* value) {
    return static_cast<const Index*>(index)->find(doubt, key, *value);
  };
  plugin.size = [](const void* index) { return static_cast<const Index*>(index)->size(); };
  plugin.inspect = [](const void* index, Inspector& inspector) {
    return static_cast<const Index*>(index)->inspect(inspector);
  };
  if constexpr (OrderedIndexClass<Index>) {
    plugin.scan = [](const void* index, const Word* from, void* context, ShowPair show) {
      static_cast<const Index*>(index)->scan(from, context, show);
    };
    plugin.find_last = [](const void* index, Word bound, bool strictly, Word* key, Word* value) {
      return static_cast<const Index*>(index)->find_last(bound, strictly, *key, *value);
    };
  } else {
    plugin.walk = [](const void* index, std::uint64_t position, void* context, ShowPair show) {
      return static_cast<const Index*>(index)->walk(position, context, show);
    };
  }
  return plugin;
}

}  // namespace perdix::detail::index::tips
