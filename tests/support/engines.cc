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

template <class Index>
AnyIndex open_as_usual(const Pool& pool, std::string_view name) {
  return AnyIndex(std::make_unique<TypedIndex<Index>>(pool, name));
}

template <class Traits>
void add(std::vector<IndexType>& types) {
  using Number = std::uint64_t;
  using Bytes = std::string;
  const detail::index::EngineTraits& traits = Traits::kTraits;
  const std::string engine(traits.engine);
  const auto add_kinds = [&]<Storable K, Storable V>(const std::string& name,
                                                     detail::index::NamedOptions options) {
    using Index = typename Traits::template Index<K, V>;
    types.push_back({name, engine, kKindOf<K>, kKindOf<V>, OrderedIndex<Index>, options,
                     open_as_usual<Index>, open_with<Traits, Index>});
  };
  const auto add_opened = [&](const std::string& name, detail::index::NamedOptions options) {
    add_kinds.template operator()<Number, Number>(name, options);
    add_kinds.template operator()<Number, Bytes>(name, options);
    add_kinds.template operator()<Bytes, Number>(name, options);
    add_kinds.template operator()<Bytes, Bytes>(name, options);
  };
  add_opened(engine, nullptr);
  if (traits.buffered != nullptr) add_opened(engine + "+buffers", traits.buffered);
  if (traits.small != nullptr) add_opened(engine + "+small", traits.small);
  if (traits.growing != nullptr) add_opened(engine + "+growing", traits.growing);
  if (traits.straight != nullptr) add_opened(engine + "+straight", traits.straight);
}

template <class... Traits>
std::vector<IndexType> make_types(std::tuple<Traits...>*) {
  std::vector<IndexType> types;
  (add<Traits>(types), ...);
  return types;
}

}  // namespace

AnyIndex IndexType::open(const Pool& pool, std::string_view index) const {
  return options == nullptr ? open_as_usual(pool, index) : open_with(pool, index, options());
}

bool IndexType::buffered() const { return name.ends_with("+buffers"); }

std::string IndexType::kinds() const {
  return std::string(to_string(key_kind)) + "_" + std::string(to_string(value_kind));
}

std::span<const IndexType> index_types() {
  static const std::vector<IndexType> types =
      make_types(static_cast<samples::AllEngines*>(nullptr));
  return types;
}

const std::vector<IndexType>& few_index_types() {
  static const std::vector<IndexType> few = [] {
    const auto is_left_out = [](const IndexType& type) {
      return type.engine.starts_with("tips:") && type.engine != "tips:hash" &&
             type.engine != "tips:btree" && type.key_kind != type.value_kind;
    };
    const std::span<const IndexType> all = index_types();
    std::vector<IndexType> types(all.begin(), all.end());
    std::erase_if(types, is_left_out);
    return types;
  }();
  return few;
}

}  // namespace perdix::test
