#include "index/engine.h"

#include <string>

#include <fmt/format.h>

#include <perdix/error.h>

#include "pool/pool_core.h"

namespace perdix::detail::index {
namespace {

/// The first set's plug-in host that `wanted` accepts; null if there is none.
template <class Wanted>
const PluginHost* find_host(Wanted wanted) {
  for (const EngineSet* set : engine_sets())
    if (set != nullptr && set->plugins != nullptr && wanted(*set->plugins)) return set->plugins;
  return nullptr;
}

/// Names of engines, for messages.
std::string names_of_engines() {
  std::string names;
  for_each_engine([&](const EngineType& engine) {
    if (!names.empty()) names += ", ";
    names += engine.name;
  });
  return names;
}

}  // namespace

const EngineType* look_up_engine(std::string_view name) {
  const EngineType* found = nullptr;
  for_each_engine([&](const EngineType& engine) {
    if (engine.name == name) found = &engine;
  });
  return found;
}

const EngineType& find_engine(std::string_view name) {
  if (const EngineType* engine = look_up_engine(name)) return *engine;
  throw Error(Errc::invalid_argument,
              fmt::format("no engine is called '{}'; there are: {}", name, names_of_engines()));
}

const EngineType* look_up_engine(const IndexInfo& info, const pool::PoolCore& pool) {
  const PluginHost* host = plugin_host_of(info.engine);
  const EngineType* engine = host ? host->look_up(info, pool) : look_up_engine(info.engine);
  return engine != nullptr && engine->model == info.model ? engine : nullptr;
}

const EngineType& find_engine(const IndexInfo& info, const pool::PoolCore& pool) {
  return plugin_host_of(info.engine) ? engine_of(info, pool) : find_engine(info.engine);
}

const EngineType& engine_of(const IndexInfo& info, const pool::PoolCore& pool) {
  if (const EngineType* engine = look_up_engine(info, pool)) return *engine;
  if (plugin_host_of(info.engine)) {
    throw Error(
        Errc::unsupported,
        fmt::format("index '{}' has the engine '{}' for {} keys, a plug-in that pool '{}' "
                    "was opened without; use the program that has it (PoolOptions::plugins; in C, "
                    "perdix_pool_options::plugins, or perdix_tips_add_indexes() before the pool "
                    "is opened)",
                    info.name, info.engine, to_string(info.key_kind), pool.path().string()));
  }
  throw Error(Errc::unsupported,
              fmt::format("index '{}' of pool '{}' has the engine '{}' for {}, which this program "
                          "doesn't have (it has: {}); use one that does, of this release or a "
                          "later one",
                          info.name, pool.path().string(), info.engine, to_string(info.model),
                          names_of_engines()));
}

const PluginHost* plugin_host_of(std::string_view engine) {
  return find_host([&](const PluginHost& host) { return host.owns(engine); });
}

void require_plugins(std::span<const perdix::tips::Plugin* const> plugins) {
  if (plugins.empty()) return;
  const PluginHost* host = find_host([](const PluginHost&) { return true; });
  if (host == nullptr) {
    throw Error(Errc::unsupported,
                "this program has no engine that takes plug-ins; use perdix::Tips or "
                "perdix::Index in it, and a library that was built with the engine tips");
  }
  host->require(plugins);
}

}  // namespace perdix::detail::index
