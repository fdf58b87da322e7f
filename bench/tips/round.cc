#include "tips/round.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "experiments/measure.h"
#include "terminal/format.h"

namespace perdix::bench::plugged {
namespace {

constexpr std::size_t kStringBytes = 24;
constexpr const char* kMixes[] = {"a", "b", "c", "d", "e"};
constexpr Distribution kDistributions[] = {Distribution::uniform, Distribution::zipfian};

Distribution of(const char* mix, Distribution distribution) {
  return mix == std::string_view("d") ? Distribution::latest : distribution;
}

Setup with(Setup setup, const char* parameter, std::uint64_t value) {
  setup.parameters[parameter] = value;
  return setup;
}

/// Sets the size of the operational logs, and as many undo records as fit in that size.
Setup with_logs(const Setup& setup, std::uint64_t bytes) {
  constexpr std::uint64_t kRecordBytes = 64, kMinUndoRecords = 320,
                          kMaxUndoRecords = std::uint64_t{1} << 22;
  return with(with(setup, "log_bytes", bytes), "undo_records",
              std::clamp(bytes / kRecordBytes, kMinUndoRecords, kMaxUndoRecords));
}

/// The counts of Tips during a phase.
struct Counted {
  PhaseResult result;
  TipsStats before, after;

  std::uint64_t hits() const { return after.cache_hits - before.cache_hits; }
  std::uint64_t misses() const { return after.cache_misses - before.cache_misses; }
  std::uint64_t replays() const { return after.replays - before.replays; }
  std::uint64_t replayed() const { return after.replayed - before.replayed; }
  std::uint64_t workers() const { return after.workers_used - before.workers_used; }
  std::uint64_t reclamations() const { return after.reclamations - before.reclamations; }
  std::uint64_t undo_records() const { return after.undo_records - before.undo_records; }
  std::uint64_t undo_saved() const { return after.undo_saved - before.undo_saved; }
};

/// Reading the counts replays all logs, so the phase begins and ends without a backlog.
Counted count(Trial& trial, const Workload& workload, Distribution distribution,
              std::uint64_t operations) {
  const auto counts = [&] { return trial.footprint().tips.value_or(TipsStats{}); };
  Counted counted;
  counted.before = counts();
  counted.result = trial.run(workload, distribution, operations);
  counted.after = counts();
  return counted;
}

}  // namespace

std::uint64_t most_records(const Config& config) {
  // Inserts add one each; five in a hundred operations of D and E do, so theirs are fewer.
  return config.records + config.operations;
}

void Round::mixes(Figure& figure, const System& system) {
  for (const auto& [kind, keys] : {std::pair{Kind::u64, "integers"}, {Kind::bytes, "strings"}}) {
    for (const std::uint64_t threads : threads_for(system, config_.threads)) {
      Setup setup = setup_for(threads);
      setup.data.shape.key_kind = kind;
      if (kind == Kind::bytes) setup.data.shape.key_size = kStringBytes;
      Trial trial(bench_, system, setup, config_.records);
      for (const char* mix : kMixes) {
        const Workload& workload = find_workload(mix);
        if (why_not(system, workload, 1)) continue;
        for (const Distribution choice : kDistributions) {
          const Distribution distribution = of(mix, choice);
          if (distribution == Distribution::latest && choice != kDistributions[0]) continue;
          add_throughput(figure, threads,
                         fmt::format("{}, {}, {}", mix, keys, to_string(distribution)), system.name,
                         trial.run(workload, distribution, config_.operations));
        }
      }
    }
  }
}

void Round::parts(Figure& figure, const System& system) {
  const auto add = [&](const char* part, const char* workload, std::uint64_t threads,
                       std::uint64_t cached) {
    Setup setup = with(setup_for(threads), "cached_pairs", cached);
    setup = with(setup, "chain", cached == 0 ? 1 : 64);
    Trial trial(bench_, system, setup, config_.records);
    const Counted counted =
        count(trial, find_workload(workload), Distribution::uniform, config_.operations);
    figure.rows.push_back(
        {fmt::format("{}, {}", part, threads_text(threads)),
         system.name,
         {throughput(counted.result), ratio(counted.hits(), counted.hits() + counted.misses())}});
  };
  for (const std::uint64_t threads : threads_for(system, config_.threads)) {
    add("get, cached", "get", threads, 4 * config_.records);
    add("get, not cached", "get", threads, 0);
    add("update", "update", threads, config_.records / 4);
    add("insert", "insert", threads, config_.records / 4);
    if (!why_not(system, find_workload("scan100"), 1))
      add("scan of 100 pairs", "scan100", threads, config_.records / 4);
  }
}

void Round::workers(Figure& figure, const System& system) {
  for (const std::uint64_t threads : threads_for(system, config_.threads)) {
    Trial trial(bench_, system, with(setup_for(threads), "most_workers", config_.most_workers),
                config_.records);
    for (const char* mix : kMixes) {
      const Workload& workload = find_workload(mix);
      if (why_not(system, workload, 1)) continue;
      const Counted counted =
          count(trial, workload, of(mix, Distribution::uniform), config_.operations);
      figure.rows.push_back({fmt::format("{}, {}", mix, threads_text(threads)),
                             system.name,
                             {ratio(counted.workers(), counted.replays()),
                              ratio(counted.replayed(), counted.replays())}});
    }
  }
}

void Round::cache(Figure& figure, const System& system) {
  for (const std::uint64_t percent : config_.cached) {
    Trial trial(bench_, system, with(setup_for(1), "cached_pairs", config_.records * percent / 100),
                config_.records);
    for (const char* mix : {"a", "b", "c", "d"}) {
      const Counted counted =
          count(trial, find_workload(mix), of(mix, Distribution::uniform), config_.operations);
      figure.rows.push_back(
          {fmt::format("{}, {} %", mix, percent),
           system.name,
           {throughput(counted.result), ratio(counted.hits(), counted.hits() + counted.misses())}});
    }
  }
}

void Round::logs(Figure& figure, const System& system) {
  for (const std::uint64_t bytes : config_.log_bytes) {
    Trial trial(bench_, system, with_logs(setup_for(1), bytes), config_.records);
    const Counted counted =
        count(trial, find_workload("a"), Distribution::uniform, config_.operations);
    figure.rows.push_back(
        {terminal::format_bytes(bytes),
         system.name,
         {throughput(counted.result), static_cast<double>(counted.reclamations())}});
  }
}

void Round::undo(Figure& figure, const System& system) {
  for (const Distribution distribution : kDistributions) {
    Trial trial(bench_, system, setup_for(1), config_.records);
    const Counted counted = count(trial, find_workload("a"), distribution, config_.operations);
    const std::uint64_t asked = counted.undo_records() + counted.undo_saved();
    figure.rows.push_back(
        {fmt::format("a, {}", to_string(distribution)),
         system.name,
         {ratio(counted.undo_saved(), asked), ratio(counted.undo_records(), config_.operations / 2),
          ratio(counted.replayed(), config_.operations / 2)}});
  }
}

void Round::recovery(Figure& figure, const System& system) {
  for (const std::uint64_t bytes : config_.log_bytes) {
    const Restart restart =
        restart_after_kill(bench_, system, with_logs(setup_for(1), bytes), config_.records);
    figure.rows.push_back({fmt::format("logs of {}", terminal::format_bytes(bytes)),
                           system.name,
                           {restart.first_answer * 1e9, restart.resumed * 1e9}});
  }
}

Setup Round::setup_for(std::uint64_t threads) const {
  Setup setup;
  setup.max_records = most_records(config_);
  setup.threads = static_cast<unsigned>(threads);
  setup.parameters["cached_pairs"] = config_.records / 4;
  return setup;
}

}  // namespace perdix::bench::plugged
