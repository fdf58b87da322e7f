#include "support/engines.h"

#include <memory>
#include <tuple>
#include <type_traits>
#include <vector>

#include "index/engine.h"
#include "support/typed_index.h"
#include "toys/engines.h"

namespace perdix::test {
namespace {

/// Enough write buffers for a few leaves, so that they also change hands.
constexpr std::uint64_t kSmallBudget = 16 << 10;

template <class Index>
AnyIndex open_with(const Pool& pool, std::string_view name, const IndexOptions& options) {
  if constexpr (std::is_constructible_v<Index, const Pool&, std::string_view, IndexOptions>)
    return AnyIndex(std::make_unique<TypedIndex<Index>>(pool, name, options));
  else
    return AnyIndex(std::make_unique<TypedIndex<Index>>(pool, name));
}

template <class Index, std::uint64_t kDramBudget>
AnyIndex open(const Pool& pool, std::string_view name) {
  if constexpr (kDramBudget == 0)
    return AnyIndex(std::make_unique<TypedIndex<Index>>(pool, name));
  else
    return open_with<Index>(pool, name, IndexOptions{kDramBudget});
}

/// The class template of an engine, with the name that pools know it by.
template <template <Storable, Storable> class Index, std::uint64_t kDramBudget = 0>
void add_opened(std::vector<IndexType>& types, const std::string& engine) {
  using Number = std::uint64_t;
  using Bytes = std::string;
  const auto add_kinds = [&]<Storable K, Storable V>() {
    const std::string name = engine + (kDramBudget == 0 ? "" : "+buffers");
    types.push_back({name, engine, kKindOf<K>, kKindOf<V>, OrderedIndex<Index<K, V>>,
                     kDramBudget != 0, open<Index<K, V>, kDramBudget>, open_with<Index<K, V>>});
  };
  add_kinds.template operator()<Number, Number>();
  add_kinds.template operator()<Number, Bytes>();
  add_kinds.template operator()<Bytes, Number>();
  add_kinds.template operator()<Bytes, Bytes>();
}

template <class Traits>
void add(std::vector<IndexType>& types) {
  const std::string engine(Traits::kTraits.engine);
  add_opened<Traits::template Index>(types, engine);
  if (index::find_engine(engine).can.buffers)
    add_opened<Traits::template Index, kSmallBudget>(types, engine);
}

template <class... Traits>
std::vector<IndexType> make_types(std::tuple<Traits...>*) {
  std::vector<IndexType> types;
  (add<Traits>(types), ...);
  return types;
}

}  // namespace

std::string IndexType::kinds() const {
  return std::string(to_string(key_kind)) + "_" + std::string(to_string(value_kind));
}

std::span<const IndexType> index_types() {
  static const std::vector<IndexType> types = make_types(static_cast<toys::AllEngines*>(nullptr));
  return types;
}

}  // namespace perdix::test
