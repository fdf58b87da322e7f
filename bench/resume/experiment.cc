#include "resume/experiment.h"

#include <algorithm>

#include <fmt/format.h>

#include <perdix/error.h>

#include "common/environment.h"
#include "common/place.h"
#include "pool/claim_image.h"
#include "resume/loader.h"
#include "resume/process.h"
#include "terminal/format.h"
#include "wal/layout.h"

namespace perdix::bench::resumption {
namespace {

using terminal::format_count;

void require(bool condition, const std::string& message) {
  if (!condition) throw Error(Errc::invalid_argument, message);
}

bool ascends(const std::vector<std::uint64_t>& numbers) {
  return std::ranges::adjacent_find(numbers, std::ranges::greater_equal()) == numbers.end();
}

// Three pools of about 60 bytes per pair exist together, because a copy is measured.
std::uint64_t needed_space(const Config& config) {
  constexpr std::uint64_t kFixed = std::uint64_t{1} << 30;
  return kFixed + 200 * config.keys.back();
}

class Experiment {
 public:
  explicit Experiment(const Config& config)
      : config_((validate(config), config)),
        scratch_(config.pool_dir.empty() ? default_parent(needed_space(config)) : config.pool_dir),
        records_(config.seed) {
    report_.config = config;
    report_.directory = scratch_.path().string();
    report_.file_system = file_system_of(scratch_.path());
    report_.machine = machine_description();
    report_.build = build_description();
  }

  Report run() {
    for (const std::uint64_t keys : config_.keys) {
      measure_without_buffers(keys);
      measure_with_buffers(keys);
    }
    return std::move(report_);
  }

 private:
  void measure_without_buffers(std::uint64_t keys) {
    const Shared<Acknowledged> acknowledged;
    load(keys, 0, *acknowledged);
    measure_rebuilds(0, *acknowledged);
    remove(crashed());
  }

  void measure_with_buffers(std::uint64_t keys) {
    const Shared<Acknowledged> acknowledged;
    load(keys, IndexOptions::kUnlimited, *acknowledged);
    measure_rebuilds(IndexOptions::kUnlimited, *acknowledged);
    measure_services(*acknowledged);
    remove(crashed());
  }

  void load(std::uint64_t keys, std::uint64_t dram_budget, Acknowledged& acknowledged) {
    const std::string step = fmt::format("{} keys, {} buffers: load and kill", format_count(keys),
                                         dram_budget == 0 ? "no" : "all");
    load_and_kill(crashed(), dram_budget, keys, load_options(step, keys), acknowledged);
  }

  void measure_rebuilds(std::uint64_t dram_budget, const Acknowledged& acknowledged) {
    RebuildRow row{dram_budget != 0, acknowledged.total(), {}};
    for (std::uint64_t round = 0; round < config_.repeat; ++round) {
      show(fmt::format("{} keys, {} buffers: restart, unused, and verify, {} of {}",
                       format_count(row.keys), row.buffers ? "all" : "no", round + 1,
                       config_.repeat));
      const Restart restart = restart_of(crashed(), {}, dram_budget, acknowledged, round);
      const Shared<Rebuilt> result;
      Process([&] { *result = measure_rebuild(restart); }).finish(*config_.stop);
      row.rounds.push_back(*result);
    }
    report_.rebuild.push_back(std::move(row));
  }

  void measure_services(const Acknowledged& acknowledged) {
    ServiceRow row;
    row.keys = acknowledged.total();
    const Leftover leftover = prepare_comparator(acknowledged);
    row.records = leftover.records;
    row.structured.log_bytes = leftover.log_bytes;
    row.plain.log_bytes = leftover.records * sizeof(detail::wal::Record);
    for (std::uint64_t round = 0; round < config_.repeat; ++round) {
      show(fmt::format("{} keys, all buffers: restart and serve, {} of {}", format_count(row.keys),
                       round + 1, config_.repeat));
      row.structured.rounds.push_back(
          serve(restart_of(crashed(), {}, IndexOptions::kUnlimited, acknowledged, round)));
      row.plain.rounds.push_back(serve(restart_of(rest(), plain_log(), 0, acknowledged, round)));
    }
    report_.service.push_back(std::move(row));
    remove(rest());
    remove(plain_log());
  }

  /// The comparator's index and log have the same records: its log has those of our buffers.
  Leftover prepare_comparator(const Acknowledged& acknowledged) {
    const std::string step = fmt::format("{} keys: load beside the plain log and kill",
                                         format_count(acknowledged.total()));
    show(step);
    copy(crashed());
    const Leftover leftover = write_leftover(measured(), plain_log(), *config_.stop);
    load_rest_and_kill(rest(), plain_log(), load_options(step, acknowledged.total()), acknowledged);
    return leftover;
  }

  Served serve(const Restart& restart) {
    const Shared<Served> result;
    Process([&] {
      *result = measure_service(restart, static_cast<unsigned>(config_.threads), config_.within);
    }).finish(*config_.stop);
    return *result;
  }

  /// Restarts a copy of the pool, so that every round begins with what the killed process left.
  Restart restart_of(const std::filesystem::path& pool, const std::filesystem::path& plain_log,
                     std::uint64_t dram_budget, const Acknowledged& acknowledged,
                     std::uint64_t round) {
    copy(pool);
    return {measured(), plain_log, dram_budget, records_, acknowledged, config_.seed + round};
  }

  void copy(const std::filesystem::path& pool) const {
    std::error_code error;
    remove(measured());
    if (!std::filesystem::copy_file(pool, measured(), error)) {
      throw Error(Errc::io_error,
                  fmt::format("can't copy {}: {}; name another directory with --pool-dir",
                              pool.string(), error.message()));
    }
    detail::pool::claim_image(measured());  // it was copied while it was closed
  }

  static void remove(const std::filesystem::path& path) { std::filesystem::remove(path); }

  LoadOptions load_options(const std::string& step, std::uint64_t keys) const {
    return {records_, static_cast<unsigned>(config_.load_threads), config_.stop,
            [this, step, keys](std::uint64_t done) { show(step, done, keys); }};
  }

  void show(const std::string& step, std::uint64_t done = 0, std::uint64_t total = 0) const {
    if (config_.on_progress) config_.on_progress({step, done, total});
  }

  std::filesystem::path crashed() const { return scratch_.path() / "crashed.pool"; }
  std::filesystem::path measured() const { return scratch_.path() / "measured.pool"; }
  std::filesystem::path rest() const { return scratch_.path() / "comparator.pool"; }
  std::filesystem::path plain_log() const { return scratch_.path() / "plain.log"; }

  Config config_;
  ScratchDirectory scratch_;
  Records records_;
  Report report_;
};

}  // namespace

void validate(const Config& config) {
  constexpr std::uint64_t kMinKeys = 1000;
  constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 32;
  constexpr std::uint64_t kLongest = 600'000;
  constexpr std::uint64_t kMaxRounds = 1000;
  require(!config.keys.empty(), "--keys: name at least one size");
  require(ascends(config.keys), "--keys: name sizes in ascending order, each once");
  require(config.keys.front() >= kMinKeys && config.keys.back() <= kMaxKeys,
          fmt::format("--keys: sizes must be from {} to {}", format_count(kMinKeys),
                      format_count(kMaxKeys)));
  require(!config.within.empty() && config.within.size() <= kMaxMoments,
          fmt::format("--within: name 1 to {} moments", kMaxMoments));
  require(ascends(config.within), "--within: name moments in ascending order, each once");
  require(config.within.front() >= 1 && config.within.back() <= kLongest,
          fmt::format("--within: moments must be from 1 to {} ms", format_count(kLongest)));
  require(config.repeat >= 1 && config.repeat <= kMaxRounds,
          fmt::format("--repeat must be from 1 to {}", format_count(kMaxRounds)));
  for (const std::uint64_t threads : {config.threads, config.load_threads}) {
    require(threads >= 1 && threads <= kMaxThreads,
            fmt::format("--threads and --load-threads must be from 1 to {}", kMaxThreads));
  }
}

Report run(const Config& config) { return Experiment(config).run(); }

}  // namespace perdix::bench::resumption
