#include "tips/experiment.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "systems/systems.h"
#include "terminal/format.h"
#include "tips/round.h"

namespace perdix::bench::plugged {
namespace {

bool every(const System&) { return true; }
bool of_tips(const System& system) { return system.name.starts_with("tips:"); }

std::vector<Experiment> experiments_of(const Config& config) {
  using enum Unit;
  const auto by = [&config](void (Round::*measure)(Figure&, const System&)) {
    return [&config, measure](Bench& bench, Figure& figure, const System& system) {
      (Round(config, bench).*measure)(figure, system);
    };
  };
  const std::vector<Metric> rates = {{"throughput", operations_per_second}, {"scaling", ratio}};
  const std::vector<Metric> hits = {{"throughput", operations_per_second}, {"hits", ratio}};
  return {
      {"mixes", "YCSB's mixes (fig. 4 to 8)", rates, every, by(&Round::mixes)},
      {"parts", "Lookups that the cache answers and others, and writes", hits, every,
       by(&Round::parts)},
      {"workers",
       "Threads that replay (fig. 9, F-2)",
       {{"threads", count}, {"writes a replay", count}},
       of_tips,
       by(&Round::workers)},
      {"cache", "Size of the cache, in percent of the pairs (fig. 10)", hits, of_tips,
       by(&Round::cache)},
      {"logs",
       "Size of the logs (fig. 11)",
       {{"throughput", operations_per_second}, {"reclamations", count}},
       of_tips,
       by(&Round::logs)},
      {"undo",
       "Undo records of an update (4.3.2, 7.4)",
       {{"saved", ratio}, {"written", ratio}, {"replayed", ratio}},
       of_tips,
       by(&Round::undo)},
      {"recovery",
       "Opening after SIGKILL (7.7)",
       {{"first answer", nanoseconds}, {"all replayed", nanoseconds}},
       of_tips,
       by(&Round::recovery)},
  };
}

// The file size of the largest system, space that it frees late included.
std::uint64_t needed_space(const Config& config) {
  constexpr std::uint64_t kFixed = std::uint64_t{1} << 30, kRecord = 256;
  return kFixed + most_records(config) * kRecord;
}

nlohmann::json to_json(const Config& config) {
  return {{"systems", config.systems},
          {"records", config.records},
          {"operations", config.operations},
          {"threads", config.threads},
          {"cached", config.cached},
          {"log_bytes", config.log_bytes},
          {"repeat", config.repeat},
          {"seed", config.seed},
          {"most_workers", config.most_workers}};
}

}  // namespace

Config::Config() {
  systems = known_systems({"tips:hash", "tips:lfhash", "tips:bst", "tips:lfbst", "tips:btree",
                           "tips:art", "tips:clht", "volatile:hash", "volatile:bst",
                           "volatile:btree", "volatile:art", "sptree", "nbtree", "elimda"});
}

std::vector<std::string> figure_names() { return names_of(experiments_of(Config())); }

void validate(const Config& config) {
  constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 32;
  require(between({config.records, config.operations}, 1, kMaxCount),
          "numbers of records and operations must be between 1 and 2^32");
  require(between(config.threads, 1, 1024), "threads: 1 to 1024");
  require(between(config.cached, 0, 100), "shares of the cache are between 0 and 100 percent");
  require(between(config.log_bytes, std::uint64_t{256} << 10, std::uint64_t{256} << 20),
          "logs have 256 KiB to 256 MiB, powers of two");
  require(between({config.most_workers}, 1, 256), "most workers: 1 to 256");
  bench::validate(config, experiments_of(config));
}

ExperimentReport run(const Config& config) {
  validate(config);
  ExperimentReport report =
      bench::run(config, experiments_of(config), {most_records(config), needed_space(config)});
  report.title = "Tips: the experiments of its paper";
  report.settings = to_json(config);
  report.sizes =
      fmt::format("{} records, {} operations a phase", terminal::format_count(config.records),
                  terminal::format_count(config.operations));
  return report;
}

}  // namespace perdix::bench::plugged
