// The plugged-in indexes of this release: a line each.
#include "index/tips/plugins.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "index/tips/indexes/art.h"
#include "index/tips/indexes/bst.h"
#include "index/tips/indexes/btree.h"
#include "index/tips/indexes/hash_table.h"
#include "index/tips/indexes/plugged.h"

namespace perdix::detail::index::tips {
namespace {

/// An index for both kinds of keys.
struct Both {
  Plugin integers, strings;
};

template <template <class, class> class Index>
constexpr Both both(std::string_view name) {
  return {plugin_of<Index<Durable, IntegerKeys>>(name),
          plugin_of<Index<Durable, StringKeys>>(name)};
}

constexpr std::array kPlugins = {
    both<HashTable>("hash"),
    both<Bst>("bst"),
    both<BTree>("btree"),
    both<Art>("art"),
};

}  // namespace

const Plugin* look_up_plugin(std::string_view name, Kind keys) {
  for (const Both& both : kPlugins) {
    const Plugin& plugin = keys == Kind::u64 ? both.integers : both.strings;
    if (plugin.name == name) return &plugin;
  }
  return nullptr;
}

const Plugin& find_plugin(std::string_view engine, Kind keys) {
  const Plugin* plugin = look_up_plugin(engine.substr(kEnginePrefix.size()), keys);
  assert(plugin != nullptr);
  return *plugin;
}

}  // namespace perdix::detail::index::tips
