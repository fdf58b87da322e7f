#include "engines/engines.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <perdix/error.h>

#include "perdix_engines.h"

namespace perdix::bench {

std::span<const Engine> engines() {
  static const std::vector<Engine> all = [] {
    std::vector<Engine> engines = perdix_engines();
    for (const Engine& other :
         {btree_map_engine(), lmdb_engine(), rocksdb_engine(), std_map_engine()})
      engines.push_back(other);
    return engines;
  }();
  return all;
}

const Engine& find_engine(std::string_view name) {
  const auto all = engines();
  const auto found = std::ranges::find(all, name, &Engine::name);
  if (found != all.end()) return *found;
  std::vector<std::string_view> names;
  for (const Engine& engine : all) names.push_back(engine.name);
  throw Error(Errc::invalid_argument,
              fmt::format("no engine '{}'; choose from: {}", name, fmt::join(names, ", ")));
}

}  // namespace perdix::bench
