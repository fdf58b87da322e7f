#include "engines/engines.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <perdix/error.h>

namespace perdix::bench {

std::span<const Engine> engines() {
  static const std::vector<Engine> all = {
      sptree_engine(),    buffered_sptree_engine(),  // perdix: ordered index
      fastfair_engine(),                             // perdix: B+-tree in PM
      nbtree_engine(),                               // perdix: lock-free B+-tree
      btree_map_engine(),                            // volatile upper bound
      lmdb_engine(),      rocksdb_engine(),         std_map_engine(),
  };
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
