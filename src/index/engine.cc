#include "index/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <perdix/error.h>

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

const EngineType& engine_of(const IndexInfo& info, std::string_view pool) {
  const EngineType* engine = look_up_engine(info.engine);
  if (engine != nullptr && engine->model == info.model) return *engine;
  throw Error(
      Errc::unsupported,
      fmt::format(
          "index '{}' of pool '{}' has the engine '{}' for {}, which this release of perdix "
          "doesn't know (it has: {}); use a release that does",
          info.name, pool, info.engine, to_string(info.model), fmt::join(Index::engines(), ", ")));
}

bool is_known_engine(const IndexInfo& info) {
  const EngineType* engine = look_up_engine(info.engine);
  return engine != nullptr && engine->model == info.model;
}

}  // namespace perdix::detail::index
