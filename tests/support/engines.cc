#include "support/engines.h"

#include <memory>
#include <tuple>
#include <type_traits>
#include <vector>

#include "index/common/engine_options.h"
#include "index/engine.h"
#include "samples/engines.h"
#include "support/typed_index.h"

namespace perdix::test {
namespace {

template <class Traits, class Index>
AnyIndex open_with(const Pool& pool, std::string_view name, const IndexOptions& options) {
  return AnyIndex(std::make_unique<TypedIndex<Index>>(
      pool, name, detail::index::options_of(Traits::kOptions, Traits::kTraits.engine, options)));
}

enum class Way { usual, buffers, small, growing, straight };

template <class Traits, class Index, Way kWay>
AnyIndex open(const Pool& pool, std::string_view name) {
  if constexpr (kWay == Way::usual)
    return AnyIndex(std::make_unique<TypedIndex<Index>>(pool, name));
  else if constexpr (kWay == Way::buffers)
    return open_with<Traits, Index>(pool, name, Traits::kTraits.buffered());
  else if constexpr (kWay == Way::small)
    return open_with<Traits, Index>(pool, name, Traits::kTraits.small());
  else if constexpr (kWay == Way::growing)
    return open_with<Traits, Index>(pool, name, Traits::kTraits.growing());
  else
    return open_with<Traits, Index>(pool, name, Traits::kTraits.straight());
}

constexpr std::string_view suffix_of(Way way) {
  switch (way) {
    case Way::usual: return "";
    case Way::buffers: return "+buffers";
    case Way::small: return "+small";
    case Way::growing: return "+growing";
    case Way::straight: return "+straight";
  }
  return "";
}

/// The class template of an engine, opened in one way.
template <class Traits, Way kWay>
void add_opened(std::vector<IndexType>& types, const std::string& engine) {
  using Number = std::uint64_t;
  using Bytes = std::string;
  const auto add_kinds = [&]<Storable K, Storable V>() {
    using Index = typename Traits::template Index<K, V>;
    types.push_back({engine + std::string(suffix_of(kWay)), engine, kKindOf<K>, kKindOf<V>,
                     OrderedIndex<Index>, kWay == Way::buffers, open<Traits, Index, kWay>,
                     open_with<Traits, Index>});
  };
  add_kinds.template operator()<Number, Number>();
  add_kinds.template operator()<Number, Bytes>();
  add_kinds.template operator()<Bytes, Number>();
  add_kinds.template operator()<Bytes, Bytes>();
}

template <class Traits>
void add(std::vector<IndexType>& types) {
  const std::string engine(Traits::kTraits.engine);
  add_opened<Traits, Way::usual>(types, engine);
  if constexpr (Traits::kTraits.buffered != nullptr)
    add_opened<Traits, Way::buffers>(types, engine);
  if constexpr (Traits::kTraits.small != nullptr) add_opened<Traits, Way::small>(types, engine);
  if constexpr (Traits::kTraits.growing != nullptr) add_opened<Traits, Way::growing>(types, engine);
  if constexpr (Traits::kTraits.straight != nullptr)
    add_opened<Traits, Way::straight>(types, engine);
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
  static const std::vector<IndexType> types =
      make_types(static_cast<samples::AllEngines*>(nullptr));
  return types;
}

std::vector<IndexType> few_index_types() {
  const auto is_left_out = [](const IndexType& type) {
    return type.engine.starts_with("tips:") && type.engine != "tips:hash" &&
           type.engine != "tips:btree" && type.key_kind != type.value_kind;
  };
  const std::span<const IndexType> all = index_types();
  std::vector<IndexType> few(all.begin(), all.end());
  std::erase_if(few, is_left_out);
  return few;
}

}  // namespace perdix::test
