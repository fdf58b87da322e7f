#include "hash/experiment.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hash/round.h"
#include "systems/systems.h"
#include "terminal/format.h"

namespace perdix::bench::hashing {
namespace {

bool every(const System&) { return true; }
bool outlives_processes(const System& system) { return system.persistent; }
bool has_logs(const System& system) {
  return std::ranges::find(system.parameters, "collecting_logs") != system.parameters.end();
}
bool tells_load_factor(const System& system) { return system.tells_load_factor; }

std::vector<Experiment> experiments_of(const Config& config) {
  using enum Unit;
  const auto by = [&config](void (Round::*measure)(Figure&, const System&)) {
    return [&config, measure](Bench& bench, Figure& figure, const System& system) {
      (Round(config, bench).*measure)(figure, system);
    };
  };
  const std::vector<Metric> rates = {{"throughput", operations_per_second}, {"scaling", ratio}};
  return {
      {"operations", "Operations by themselves (Exp#1, Exp#2)", rates, every,
       by(&Round::operations)},
      {"mixes", "Mixes of YCSB (Exp#3)", rates, every, by(&Round::mixes)},
      {"latency",
       "Latency of an operation (Exp#4)",
       {{"mean", nanoseconds}, {"p50", nanoseconds}, {"p99", nanoseconds}, {"p99.9", nanoseconds}},
       every,
       by(&Round::latency)},
      {"domain", "Inserts with eADR and ADR (Exp#5)", rates, is_of_perdix, by(&Round::domain)},
      {"traffic",
       "What an operation reads and writes (Exp#6, fig. 3 and 4)",
       {{"lines read", count},
        {"lines written", count},
        {"media read", bytes},
        {"media written", bytes},
        {"read amplif.", Unit::ratio},
        {"write amplif.", Unit::ratio}},
       is_of_perdix,
       by(&Round::traffic),
       Needs::meter},
      {"space",
       "Bytes of a pair of 8-byte key and value (Exp#7)",
       {{"stored", bytes}, {"DRAM", bytes}, {"DRAM of stored", Unit::ratio}},
       every,
       by(&Round::space)},
      {"values", "Inserts by size of the value (Exp#8)", rates, every, by(&Round::values)},
      {"load_factor",
       "Load factor while pairs are added (Exp#9)",
       {{"load factor", Unit::ratio}},
       tells_load_factor,
       by(&Round::load_factor)},
      {"recovery",
       "Opening after SIGKILL (Exp#10)",
       {{"all back", nanoseconds}, {"first answer", nanoseconds}, {"pairs", operations_per_second}},
       outlives_processes,
       by(&Round::recovery)},
      {"logs", "Inserts by number of collecting logs (Exp#11)", rates, has_logs, by(&Round::logs)},
      {"buckets",
       "Throughput by size of buckets (Exp#12)",
       {{"insert_ahead", operations_per_second}, {"get", operations_per_second}},
       has_logs,
       by(&Round::buckets)},
  };
}

// The file size of the largest system, space that it frees late included.
std::uint64_t needed_space(const Config& config) {
  constexpr std::uint64_t kFixed = std::uint64_t{512} << 20, kRecord = 96;
  return kFixed + most_records(config) * (kRecord + 2 * std::ranges::max(config.value_sizes));
}

nlohmann::json to_json(const Config& config) {
  return {{"systems", config.systems},
          {"start", config.start},
          {"records", config.records},
          {"operations", config.operations},
          {"pairs", config.pairs},
          {"value_sizes", config.value_sizes},
          {"logs", config.logs},
          {"d_buckets", config.d_buckets},
          {"p_buckets", config.p_buckets},
          {"threads", config.threads},
          {"samples", config.samples},
          {"media_unit", config.media_unit},
          {"cache_bytes", config.cache_bytes},
          {"repeat", config.repeat},
          {"seed", config.seed}};
}

}  // namespace

Config::Config() {
  systems = known_systems(
      {"elimda", "nbtree", "tbb", "libcuckoo", "xenium", "flat_map", "tkrzw", "lmdb", "rocksdb"});
}

std::vector<std::string> figure_names() { return names_of(experiments_of(Config())); }

void validate(const Config& config) {
  constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 36;
  require(between({config.start, config.records, config.operations}, 1, kMaxCount),
          "numbers of records and operations must be between 1 and 2^36");
  require(ascending(config.pairs) && config.pairs.back() <= kMaxCount,
          "numbers of pairs must ascend and be between 1 and 2^36");
  require(config.samples > 0 && config.samples <= config.records,
          "samples must be between 1 and the number of records");
  require(between(config.value_sizes, 1, std::uint64_t{1} << 20), "values have 1 byte to 1 MiB");
  require(between(config.threads, 1, 1024), "threads: 1 to 1024");
  require(!config.logs.empty() && !config.d_buckets.empty() && !config.p_buckets.empty(),
          "name at least one number of logs and one size of each kind of bucket");
  bench::validate(config, experiments_of(config));
}

ExperimentReport run(const Config& config) {
  validate(config);
  ExperimentReport report =
      bench::run(config, experiments_of(config), {most_records(config), needed_space(config)});
  report.title = "ElimDa: the experiments of its paper";
  report.settings = to_json(config);
  report.sizes =
      fmt::format("{} records, {} operations a phase", terminal::format_count(config.records),
                  terminal::format_count(config.operations));
  return report;
}

}  // namespace perdix::bench::hashing
