// The list of engines.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "index/adapter.h"
#include "index/engine.h"
#include "index/fastfair/fastfair.h"
#include "index/nbtree/nbtree.h"
#include "index/sptree/sptree.h"

namespace perdix::index {
namespace {

void destroy_sptree(pool::PoolCore& pool, const IndexInfo& info, std::uint64_t& root) {
  with_types(info.key_kind, info.value_kind,
             [&]<class K, class V>() { sptree::destroy<K, V>(pool, root); });
}

void destroy_fastfair(pool::PoolCore& pool, const IndexInfo& info, std::uint64_t& root) {
  with_types(info.key_kind, info.value_kind,
             [&]<class K, class V>() { fastfair::destroy<K, V>(pool, root); });
}

void destroy_nbtree(pool::PoolCore& pool, const IndexInfo& info, std::uint64_t& root) {
  with_types(info.key_kind, info.value_kind,
             [&]<class K, class V>() { nbtree::destroy<K, V>(pool, root); });
}

constexpr std::array kEngines = {
    Engine{sptree::kEngineName, open_adapter<sptree::Tree>, destroy_sptree},
    Engine{fastfair::kEngineName, open_adapter<fastfair::Tree>, destroy_fastfair},
    Engine{nbtree::kEngineName, open_adapter<nbtree::Tree>, destroy_nbtree},
};

const Engine* look_up(std::string_view name) noexcept {
  const auto it = std::find_if(kEngines.begin(), kEngines.end(),
                               [&](const Engine& engine) { return engine.name == name; });
  return it == kEngines.end() ? nullptr : it;
}

}  // namespace

std::span<const Engine> engines() { return kEngines; }

bool is_known_engine(std::string_view name) noexcept { return look_up(name) != nullptr; }

const Engine& engine_of(const IndexInfo& info, std::string_view pool) {
  if (const Engine* engine = look_up(info.engine)) return *engine;
  throw Error(
      Errc::unsupported,
      fmt::format("index '{}' of pool '{}' has the engine '{}', which this release of perdix "
                  "doesn't know (it has: {}); use a release that does",
                  info.name, pool, info.engine, fmt::join(Index::engines(), ", ")));
}

const Engine& find_engine(std::string_view name) {
  if (const Engine* engine = look_up(name)) return *engine;
  throw Error(Errc::invalid_argument, fmt::format("no engine is called '{}'; there are: {}", name,
                                                  fmt::join(Index::engines(), ", ")));
}

}  // namespace perdix::index
