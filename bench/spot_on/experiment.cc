#include "spot_on/experiment.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "spot_on/forms.h"
#include "spot_on/round.h"
#include "systems/systems.h"
#include "terminal/format.h"

namespace perdix::bench::spot_on {
namespace {

bool every(const System&) { return true; }

/// Whether it has write buffers and nothing more.
bool is_buffered(const System& system) {
  const std::string techniques = form_of(system.name).techniques;
  return is_of_perdix(system) && (techniques == "b" || techniques == "buffers");
}

bool is_plain_or_buffered(const System& system) {
  const std::string techniques = form_of(system.name).techniques;
  return is_of_perdix(system) && (techniques.empty() || techniques == "b");
}

std::vector<Experiment> experiments_of(const Config& config) {
  using enum Unit;
  const auto by = [&config](void (Round::*measure)(Figure&, const System&)) {
    return [&config, measure](Bench& bench, Figure& figure, const System& system) {
      (Round(config, bench).*measure)(figure, system);
    };
  };
  return {
      {"buffers",
       "Media bytes of an insert without and with write buffers (fig. 2)",
       {{"media written", bytes}, {"of plain", Unit::ratio}, {"media read", bytes}},
       is_plain_or_buffered,
       by(&Round::buffers),
       Needs::meter},
      {"traffic",
       "Media bytes of an insert by technique (fig. 3)",
       {{"media written", bytes},
        {"of plain", Unit::ratio},
        {"media read", bytes},
        {"read to modify", bytes},
        {"flushes", count},
        {"fences", count}},
       is_of_perdix,
       by(&Round::traffic),
       Needs::meter},
      {"throughput",
       "Inserts by technique (fig. 3)",
       {{"throughput", operations_per_second}, {"of plain", Unit::ratio}},
       every,
       by(&Round::throughput),
       Needs::clock},
      {"latency",
       "Latency by technique (fig. 4)",
       {{"p50", nanoseconds},
        {"p90", nanoseconds},
        {"p99", nanoseconds},
        {"p99.9", nanoseconds},
        {"mean", nanoseconds}},
       every,
       by(&Round::latency),
       Needs::clock},
      {"budgets",
       "Inserts with DRAM for some of the buffers",
       {{"throughput", operations_per_second},
        {"time of slower", Unit::ratio},
        {"budget", bytes},
        {"DRAM", bytes}},
       is_buffered,
       by(&Round::budgets),
       Needs::clock},
      {"budget_traffic",
       "Media bytes of an insert with DRAM for some of the buffers",
       {{"media written", bytes}, {"media read", bytes}, {"fences", count}},
       is_buffered,
       by(&Round::budget_traffic),
       Needs::meter},
  };
}

// The file size of the largest system, space that it frees late included.
std::uint64_t needed_space(const Config& config) {
  constexpr std::uint64_t kFixed = std::uint64_t{512} << 20, kRecord = 192;
  return kFixed + config.records * kRecord;
}

nlohmann::json to_json(const Config& config) {
  return {{"systems", config.systems},
          {"records", config.records},
          {"reads", config.reads},
          {"threads", config.threads},
          {"repeat", config.repeat},
          {"seed", config.seed},
          {"dram_budget", config.dram_budget},
          {"shares", config.shares},
          {"media_unit", config.media_unit},
          {"cache_bytes", config.cache_bytes}};
}

}  // namespace

Config::Config() { systems = known_forms(); }

std::vector<std::string> figure_names() { return names_of(experiments_of(Config())); }

void validate(const Config& config) {
  constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 32;
  require(between({config.records, config.reads}, 1, kMaxCount),
          "numbers of records and reads must be between 1 and 2^32");
  require(between(config.threads, 1, 1024), "threads: 1 to 1024");
  require(between(config.shares, 1, 100), "shares: 1 to 100 percent");
  bench::validate(config, experiments_of(config));
}

ExperimentReport run(const Config& config) {
  validate(config);
  ExperimentReport report =
      bench::run(config, experiments_of(config),
                 {std::max(config.records, config.reads), needed_space(config)});
  report.title = "Spot-on techniques: the experiments of the SpTree paper's section 3";
  report.settings = to_json(config);
  report.sizes = fmt::format("{} inserts, {} reads", terminal::format_count(config.records),
                             terminal::format_count(config.reads));
  if (const std::string missing = missing_forms(); !missing.empty())
    report.notes.push_back(missing);
  report.notes.push_back(
      "DIMMs: 120.96 M inserts by one thread into published code on six Optane DIMMs, as its "
      "authors published them");
  return report;
}

}  // namespace perdix::bench::spot_on
