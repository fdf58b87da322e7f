#include "converted/indexes.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include <perdix/tips.h>

#include "converted/khash.h"
#include "converted/red_black_tree.h"
#include "support/typed_index.h"

namespace perdix::test {
namespace {

using Khashes = tips::User<"khash", examples::Khash>;
using Trees = tips::User<"rbtree", examples::RedBlackTree>;

template <class Plugin, class K, class V>
AnyIndex open(const Pool& pool, std::string_view name) {
  return AnyIndex(std::make_unique<TypedIndex<Tips<Plugin, K, V>>>(pool, name));
}

template <class Plugin, class K, class V>
IndexType type() {
  const std::string engine(Plugin::kEngine);
  constexpr bool kOrdered = std::is_same_v<typename Plugin::Order, tips::Ordered>;
  return {engine, engine, kKindOf<K>, kKindOf<V>, kOrdered, nullptr, open<Plugin, K, V>, nullptr};
}

}  // namespace

std::vector<const tips::Plugin*> converted_plugins() {
  std::vector<const tips::Plugin*> all = Khashes::plugins();
  for (const tips::Plugin* plugin : Trees::plugins()) all.push_back(plugin);
  return all;
}

std::vector<IndexType> converted_types() {
  using U64 = std::uint64_t;
  return {type<Khashes, U64, U64>(), type<Khashes, std::string, U64>(), type<Trees, U64, U64>(),
          type<Trees, std::string, U64>()};
}

}  // namespace perdix::test
