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

}  // namespace

std::span<const Engine> engines() { return kEngines; }

const Engine& find_engine(std::string_view name) {
  const auto it = std::find_if(kEngines.begin(), kEngines.end(),
                               [&](const Engine& engine) { return engine.name == name; });
  if (it != kEngines.end()) return *it;
  throw Error(Errc::invalid_argument, fmt::format("no engine is called '{}'; there are: {}", name,
                                                  fmt::join(Index::engines(), ", ")));
}

}  // namespace perdix::index
