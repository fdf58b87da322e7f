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
         {btree_map_engine(), lmdb_engine(), rocksdb_engine(), std_map_engine(), tbb_engine(),
          libcuckoo_engine(), xenium_engine(), flat_map_engine(), tkrzw_engine()})
      engines.push_back(other);
    for (const Engine& plugin : volatile_plugin_engines()) engines.push_back(plugin);
    return engines;
  }();
  return all;
}

bool is_of_perdix(const Engine& engine) {
  static const std::vector<Engine> ours = perdix_engines();
  return std::ranges::find(ours, engine.name, &Engine::name) != ours.end();
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

std::optional<std::string> why_not(const Engine& engine, const Workload& workload,
                                   unsigned threads) {
  const auto refused = [&](std::string_view reason) {
    return fmt::format("{} {}; leave out workload '{}' or contender '{}'", engine.name, reason,
                       workload.name, engine.name);
  };
  if (workload.share(OpKind::scan) > 0 && !engine.calls.scan)
    return refused("keeps its keys in no order and can't scan");
  const bool updates = workload.share(OpKind::update) + workload.share(OpKind::rmw) > 0;
  if (updates && !engine.calls.update) return refused("has no call that updates a value");
  if (threads > engine.most_threads)
    return fmt::format("{} is for {} thread{}, not for {}; ask for fewer, or leave it out",
                       engine.name, engine.most_threads, engine.most_threads == 1 ? "" : "s",
                       threads);
  return std::nullopt;
}

}  // namespace perdix::bench
