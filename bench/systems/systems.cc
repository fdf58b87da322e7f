#include "systems/systems.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <perdix/error.h>

#include "system_list.h"

namespace perdix::bench {

std::span<const System> systems() {
  static const std::vector<System> all = [] {
    std::vector<System> systems = perdix_systems();
    for (const System& other : other_systems()) systems.push_back(other);
    return systems;
  }();
  return all;
}

bool is_of_perdix(const System& system) {
  static const std::vector<System> ours = perdix_systems();
  return std::ranges::find(ours, system.name, &System::name) != ours.end();
}

const System& find_system(std::string_view name) {
  const auto all = systems();
  const auto found = std::ranges::find(all, name, &System::name);
  if (found != all.end()) return *found;
  std::vector<std::string_view> names;
  for (const System& system : all) names.push_back(system.name);
  throw Error(Errc::invalid_argument,
              fmt::format("no system '{}'; choose from: {}", name, fmt::join(names, ", ")));
}

std::optional<std::string> why_not(const System& system, const Workload& workload,
                                   unsigned threads) {
  const auto refused = [&](std::string_view reason) {
    return fmt::format("{} {}; leave out workload '{}' or system '{}'", system.name, reason,
                       workload.name, system.name);
  };
  if (workload.share(OpKind::scan) > 0 && !system.calls.scan)
    return refused("keeps its keys in no order and can't scan");
  const bool updates = workload.share(OpKind::update) + workload.share(OpKind::rmw) > 0;
  if (updates && !system.calls.update) return refused("has no call that updates a value");
  if (threads > system.max_threads)
    return fmt::format("{} is for {} thread{}, not for {}; ask for fewer, or leave it out",
                       system.name, system.max_threads, system.max_threads == 1 ? "" : "s",
                       threads);
  return std::nullopt;
}

}  // namespace perdix::bench
