// The public interface of bytes.
#include <algorithm>

#include <fmt/format.h>

#include <perdix/index.h>
#include <perdix/tips_plugin.h>

#include "index/bytes_index.h"
#include "index/common/open_or_remove.h"
#include "index/engine.h"
#include "pool/as_errors.h"
#include "pool/pool_core.h"

namespace perdix {

namespace {

/// A program that opens indexes by name may name any engine: this links all of them into it.
[[gnu::used]] constexpr auto* kLinkAllEngines = &detail::index::all_engine_sets;

/// Throws unsupported if an index has no pairs.
void require_pairs(const IndexInfo& info, const detail::index::EngineType& engine) {
  if (engine.model == DataModel::pairs) return;
  throw Error(
      Errc::unsupported,
      fmt::format("index '{}' holds {} (engine '{}'), so it has no keys and values; open it "
                  "by the class of its engine",
                  info.name, to_string(engine.model), info.engine));
}

/// What an index is that must exist, of an engine that is known.
IndexInfo existing(const Pool& pool, std::string_view name) {
  const std::vector<IndexInfo> all = pool.indexes();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const IndexInfo& i) { return i.name == name; });
  if (it == all.end()) {
    throw Error(Errc::not_found,
                fmt::format("{}: there is no index '{}'; `perdix info` lists those that there are",
                            pool.core()->path().string(), name));
  }
  detail::index::engine_of(*it, *pool.core());
  return *it;
}

}  // namespace

std::unique_ptr<Index> Index::open(const Pool& pool, std::string_view name,
                                   const IndexOptions& options) {
  const IndexInfo info =
      detail::pool::as_errors(*pool.core(), [&] { return existing(pool, name); });
  return open_or_create(pool, info, options);
}

std::unique_ptr<Index> Index::open_or_create(const Pool& pool, const IndexInfo& info,
                                             const IndexOptions& options) {
  return detail::pool::as_errors(*pool.core(), [&] {
    const detail::index::EngineType& engine = detail::index::find_engine(info, *pool.core());
    require_pairs(info, engine);
    engine.require_options(info.engine, options);  // before an index is made
    return detail::index::open_or_remove(
        *pool.core(), info, [&](std::uint64_t& root) { engine.destroy(*pool.core(), info, root); },
        [&](detail::pool::IndexHandle handle) {
          return detail::index::open_bytes_index(engine, std::move(handle), options);
        });
  });
}

std::vector<OptionInfo> Index::options(std::string_view engine) {
  return detail::pool::as_errors([&] {
    if (const auto* host = detail::index::plugin_host_of(engine)) return host->options();
    const detail::index::EngineType& type = detail::index::find_engine(engine);
    if (type.model == DataModel::pairs) return type.options();
    throw Error(Errc::invalid_argument,
                fmt::format("the engine {} holds {}, so it has no options by name; open it by its "
                            "class",
                            engine, to_string(type.model)));
  });
}

std::vector<std::string> Index::engines(std::span<const tips::Plugin* const> plugins) {
  return detail::pool::as_errors([&] {
    std::vector<std::string> names;
    detail::index::for_each_engine([&](const detail::index::EngineType& engine) {
      if (engine.model == DataModel::pairs) names.emplace_back(engine.name);
    });
    for (const tips::Plugin* plugin : plugins)
      if (plugin != nullptr && std::ranges::find(names, plugin->engine()) == names.end())
        names.push_back(plugin->engine());
    return names;
  });
}

}  // namespace perdix
