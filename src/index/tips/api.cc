// The public classes of Tips: open the index by name; its calls go to the engine.
#include <array>

#include <perdix/tips.h>

#include "index/common/open_words.h"
#include "index/common/pairs_engine.h"
#include "index/tips/check.h"
#include "index/tips/options.h"
#include "index/tips/plugins.h"
#include "index/tips/tips.h"

namespace perdix {

namespace detail::index::tips {
namespace {

constexpr std::array kEngines = {
    pairs_engine<UnorderedMap, kOptions>(kHashEngine, {}),
    pairs_engine<OrderedMap, kOptions>(kBTreeEngine, {.ordered = true}),
};

// Of the plug-ins that a pool was opened with; their names differ.
constexpr EngineType kPlugged = pairs_engine<UnorderedMap, kOptions>(kEnginePrefix, {});
constexpr EngineType kPluggedOrdered =
    pairs_engine<OrderedMap, kOptions>(kEnginePrefix, {.ordered = true});

const EngineType* look_up_plugged(const IndexInfo& info, const pool::PoolCore& pool) {
  const std::string_view name = std::string_view(info.engine).substr(kEnginePrefix.size());
  const Plugin* plugin = look_up_plugin(pool, name, info.key_kind);
  if (plugin == nullptr) return nullptr;
  return plugin->ordered ? &kPluggedOrdered : &kPlugged;
}

void check_logs(pool::PoolCore& pool, const IndexInfo& info, CheckReport& report,
                std::vector<pm::Offset>& reached) {
  const pool::IndexHandle handle = pool.open_index(info);
  tips::check_logs(pool, handle.root(), report,
                   [&](pm::Offset block) { reached.push_back(block); });
}

/// The class of an index of the public class Tips.
template <class Order, class K>
using MapOf = std::conditional_t<std::is_same_v<Order, perdix::tips::Ordered>, OrderedMap<K>,
                                 UnorderedMap<K>>;

constexpr PluginHost kPlugins = {is_plugged_engine, require_plugins,
                                 [] { return describe(kOptions); }, look_up_plugged, check_logs};

}  // namespace

extern const EngineSet engine_set = {kEngines, &kPlugins};

}  // namespace detail::index::tips

template <class Order, Storable K, Storable V>
tips::Opened<Order, K, V>::Opened(const Pool& pool, std::string_view name, std::string_view engine,
                                  const TipsOptions& options)
    : Order::template Base<K, V>(detail::index::open_words<detail::index::tips::MapOf<Order, K>,
                                                           detail::index::tips::kOptions, K>(
          pool, name, engine, kKindOf<V>, options)) {}

template struct tips::Opened<tips::Unordered, std::uint64_t, std::uint64_t>;
template struct tips::Opened<tips::Unordered, std::uint64_t, std::string>;
template struct tips::Opened<tips::Unordered, std::string, std::uint64_t>;
template struct tips::Opened<tips::Unordered, std::string, std::string>;
template struct tips::Opened<tips::Ordered, std::uint64_t, std::uint64_t>;
template struct tips::Opened<tips::Ordered, std::uint64_t, std::string>;
template struct tips::Opened<tips::Ordered, std::string, std::uint64_t>;
template struct tips::Opened<tips::Ordered, std::string, std::string>;

}  // namespace perdix
