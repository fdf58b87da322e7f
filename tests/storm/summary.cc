#include "storm/summary.h"

#include <cstdio>

#include <fmt/format.h>

namespace perdix::test::storm {

void Summary::add(const Episode& episode, const Counters& c) {
  ++episodes_;
  const std::array<std::uint64_t, 18> counts = {
      c.operations,    c.injected,        c.failed_calls, c.kills,
      c.kills_in_open, c.reopens,         c.comparisons,  c.forks,
      c.copies,        c.copies_refused,  c.recreated,    c.damaged,
      c.full,          c.visits,          c.threads,      c.stops,
      c.power_losses,  c.descriptors_lost};
  for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].count += counts[i];
  for (const IndexPlan& index : episode.indexes) {
    for (const Round& round : episode.rounds) {
      for (const Step& step : round.steps) {
        configurations_.insert(
            fmt::format("{} {} {} {} {} {} {}", index.type->engine, index.type->kinds(),
                        name_of(index.keys.shape), test::name_of(episode.pools[index.pool].domain),
                        name_of(step.work), name_of(step.disturbance), name_of(step.fault)));
      }
    }
  }
}

void Summary::add_cut(const Episode& episode, const Counters& counters) {
  add(episode, counters);
  ++cut_;
}

std::uint64_t Summary::count_of(std::string_view name) const {
  for (const Row& row : rows_) {
    if (row.name == name) return row.count;
  }
  return 0;
}

void Summary::print_progress(double seconds) const {
  fmt::print(
      "... {:.0f} s: {} episodes, {} operations, {} kills, {} failed calls injected, {} forks, "
      "{} configurations, {} findings\n",
      seconds, episodes_, count_of("operations"), count_of("kills"),
      count_of("failed calls injected"), count_of("forks"), configurations_.size(), findings_);
  std::fflush(stdout);
}

void Summary::print(double seconds) const {
  fmt::print("\n{:<26} {:>12}\n{:<26} {:>12}\n", "episodes", episodes_, "of these cut short", cut_);
  for (const Row& row : rows_) fmt::print("{:<26} {:>12}\n", row.name, row.count);
  fmt::print("{:<26} {:>12}\n{:<26} {:>12}\n\n", "configurations", configurations_.size(),
             "findings", findings_);
  fmt::print(
      "{} episodes, {} operations, {} kills, {} failed calls injected, {} configurations, {} "
      "findings in {:.0f} s\n",
      episodes_, count_of("operations"), count_of("kills"), count_of("failed calls injected"),
      configurations_.size(), findings_, seconds);
}

}  // namespace perdix::test::storm
