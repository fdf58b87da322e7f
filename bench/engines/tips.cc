#include <string>
#include <vector>

#include <perdix/tips.h>

#include "engines/engines.h"
#include "engines/perdix_map.h"

namespace perdix::bench {
namespace {

template <class Plugin>
struct Made {
  template <class K, class V>
  using Index = Tips<Plugin, K, V>;
  template <class K, class V>
  using Map = PerdixMap<Index, K, V>;
};

template <class Plugin>
Engine engine(const std::string& what) {
  using Form = Made<Plugin>;
  return {std::string(Plugin::kEngine),
          "perdix::Tips, " + what + " made durable",
          true,
          open_store<Form::template Map>,
          pool_settings,
          calls_of<Form::template Map>()};
}

}  // namespace

std::vector<Engine> tips_engines() {
  return {engine<tips::Hash>("a hash table"), engine<tips::Bst>("a binary search tree"),
          engine<tips::BTree>("a B+-tree"), engine<tips::Art>("an adaptive radix tree")};
}

}  // namespace perdix::bench
