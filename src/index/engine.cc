#include "index/engine.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <perdix/error.h>

#include "index/tips/plugins.h"
#include "pool/pool_core.h"

namespace perdix::detail::index {

const EngineType* look_up_engine(std::string_view name) {
  const std::span<const EngineType> all = engines();
  const auto it = std::find_if(all.begin(), all.end(),
                               [&](const EngineType& engine) { return engine.name == name; });
  return it == all.end() ? nullptr : &*it;
}

const EngineType& find_engine(std::string_view name) {
  if (const EngineType* engine = look_up_engine(name)) return *engine;
  throw Error(Errc::invalid_argument, fmt::format("no engine is called '{}'; there are: {}", name,
                                                  fmt::join(Index::engines(), ", ")));
}

const EngineType* look_up_engine(const IndexInfo& info, const pool::PoolCore& pool) {
  const EngineType* engine = look_up_engine(info.engine);
  if (engine == nullptr && tips::is_user_engine(info.engine)) {
    const std::string_view name = std::string_view(info.engine).substr(tips::kEnginePrefix.size());
    const tips::Plugin* plugin = tips::look_up_plugin(pool, name, info.key_kind);
    if (plugin != nullptr) engine = &plugged_engine(plugin->ordered);
  }
  return engine != nullptr && engine->model == info.model ? engine : nullptr;
}

const EngineType& find_engine(const IndexInfo& info, const pool::PoolCore& pool) {
  return tips::is_user_engine(info.engine) ? engine_of(info, pool) : find_engine(info.engine);
}

const EngineType& engine_of(const IndexInfo& info, const pool::PoolCore& pool) {
  if (const EngineType* engine = look_up_engine(info, pool)) return *engine;
  if (tips::is_user_engine(info.engine)) {
    throw Error(
        Errc::unsupported,
        fmt::format("index '{}' has the engine '{}' for {} keys, a plug-in that pool '{}' "
                    "was opened without; use the program that has it "
                    "(PoolOptions::plugins)",
                    info.name, info.engine, to_string(info.key_kind), pool.path().string()));
  }
  throw Error(
      Errc::unsupported,
      fmt::format(
          "index '{}' of pool '{}' has the engine '{}' for {}, which this release of perdix "
          "doesn't know (it has: {}); use a release that does",
          info.name, pool.path().string(), info.engine, to_string(info.model),
          fmt::join(Index::engines(), ", ")));
}

}  // namespace perdix::detail::index
