#include "special/resume/experiment.h"

#include <algorithm>

#include <fmt/format.h>

#include <perdix/error.h>

#include "common/place.h"
#include "common/require.h"
#include "pool/claim_image.h"
#include "special/resume/loader.h"
#include "special/resume/measure.h"
#include "special/resume/process.h"
#include "terminal/format.h"
#include "wal/layout.h"

namespace perdix::bench::resumption {
namespace {

using terminal::format_count;

bool ascends(const std::vector<std::uint64_t>& numbers) {
  return std::ranges::adjacent_find(numbers, std::ranges::greater_equal()) == numbers.end();
}

// Three pools of about 60 bytes per pair exist together, because a copy is measured.
std::uint64_t needed_space(const Config& config) {
  constexpr std::uint64_t kFixed = std::uint64_t{1} << 30;
  return kFixed + 200 * config.keys.back();
}

enum FigureNumber : std::size_t { kRebuild, kFirstAnswer, kAnswers };

std::vector<Figure> figures_of(const Config& config) {
  using enum Unit;
  Figure answers{"answers", "Lookups answered since the restart, opening included", {}, {}};
  for (const std::uint64_t moment : config.within)
    answers.metrics.push_back({fmt::format("{} ms", moment), count});
  answers.plotted = 0;
  answers.x_axis = "milliseconds since the restart";
  answers.y_axis = "lookups";
  return {{"rebuild",
           "Until the DRAM layers are back, in the background, while the index is idle",
           {{"first answer", nanoseconds},
            {"all back", nanoseconds},
            {"keys", operations_per_second},
            {"leaves", count},
            {"DRAM", bytes}},
           {}},
          {"first_answer",
           "Until the first answer, by the size of the log",
           {{"first answer", nanoseconds}, {"times structured", ratio}, {"log", bytes}},
           {}},
          std::move(answers)};
}

std::string keys_text(std::uint64_t keys) { return format_count(keys) + " keys"; }

nlohmann::json to_json(const Config& config) {
  return {{"keys", config.keys},
          {"within_milliseconds", config.within},
          {"repeat", config.repeat},
          {"threads", config.threads},
          {"load_threads", config.load_threads},
          {"seed", config.seed}};
}

class Experiment {
 public:
  explicit Experiment(const Config& config)
      : config_((validate(config), config)),
        scratch_(config.parent(needed_space(config))),
        records_(config.seed),
        rounds_(config.repeat, figures_of(config)) {}

  Report run() {
    for (const std::uint64_t keys : config_.keys) {
      measure_without_buffers(keys);
      measure_with_buffers(keys);
    }
    Report report = report_of("Restart of SpTree after SIGKILL", scratch_.path(), config_.repeat);
    report.settings = to_json(config_);
    report.sizes = fmt::format("{} thread{} that look keys up", config_.threads,
                               config_.threads == 1 ? "" : "s");
    report.figures = medians(rounds_);
    report.wrong = lost_;
    return report;
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
    load(keys, kUnlimited, *acknowledged);
    measure_rebuilds(kUnlimited, *acknowledged);
    measure_services(*acknowledged);
    remove(crashed());
  }

  void load(std::uint64_t keys, std::uint64_t dram_budget, Acknowledged& acknowledged) {
    const std::string step = fmt::format("{} keys, {} buffers: load and kill", format_count(keys),
                                         dram_budget == 0 ? "no" : "all");
    load_and_kill(crashed(), dram_budget, keys, load_options(step, keys), acknowledged);
  }

  void measure_rebuilds(std::uint64_t dram_budget, const Acknowledged& acknowledged) {
    const std::uint64_t keys = acknowledged.total();
    const char* const buffers = dram_budget == 0 ? "no buffers" : "all buffers";
    for (std::uint64_t round = 0; round < config_.repeat; ++round) {
      show(fmt::format("{} keys, {}: restart, unused, and verify, {} of {}", format_count(keys),
                       buffers, round + 1, config_.repeat));
      const Restart restart = restart_of(crashed(), {}, dram_budget, acknowledged, round);
      const Shared<Rebuilt> result;
      Process([&] { *result = measure_rebuild(restart); }).finish(*config_.stop);
      lost_ += result->lost;
      rounds_[round][kRebuild].rows.push_back(
          {keys_text(keys),
           buffers,
           {result->first_answer_seconds * 1e9, result->rebuilt_seconds * 1e9,
            static_cast<double>(keys) / result->rebuilt_seconds,
            static_cast<double>(result->leaves), static_cast<double>(result->dram_bytes)}});
    }
  }

  void measure_services(const Acknowledged& acknowledged) {
    const std::uint64_t keys = acknowledged.total();
    const Leftover leftover = prepare_comparator(acknowledged);
    const std::uint64_t plain_bytes = leftover.records * sizeof(detail::wal::Record);
    for (std::uint64_t round = 0; round < config_.repeat; ++round) {
      show(fmt::format("{} keys, all buffers: restart and serve, {} of {}", format_count(keys),
                       round + 1, config_.repeat));
      const Served structured = serve(restart_of(crashed(), {}, kUnlimited, acknowledged, round));
      const Served plain = serve(restart_of(rest(), plain_log(), 0, acknowledged, round));
      const auto add = [&](const char* log, std::uint64_t bytes, const Served& served) {
        add_service(rounds_[round], keys, log, bytes, served,
                    served.first_answer_seconds / structured.first_answer_seconds);
      };
      add("structured log", leftover.log_bytes, structured);
      add("plain log", plain_bytes, plain);
    }
    remove(rest());
    remove(plain_log());
  }

  void add_service(std::vector<Figure>& figures, std::uint64_t keys, const char* log,
                   std::uint64_t log_bytes, const Served& served, double times_structured) {
    lost_ += served.lost;
    figures[kFirstAnswer].rows.push_back(
        {keys_text(keys),
         log,
         {served.first_answer_seconds * 1e9, times_structured, static_cast<double>(log_bytes)}});
    Row row{keys_text(keys), log, {}};
    Line line{"all", fmt::format("{}, {}", log, keys_text(keys)), {}};
    for (std::size_t i = 0; i < config_.within.size(); ++i) {
      row.values.push_back(static_cast<double>(served.answers[i]));
      line.points.emplace_back(static_cast<double>(config_.within[i]), row.values.back());
    }
    figures[kAnswers].rows.push_back(std::move(row));
    figures[kAnswers].lines.push_back(std::move(line));
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
    config_.show({step, done, total});
  }

  std::filesystem::path crashed() const { return scratch_.path() / "crashed.pool"; }
  std::filesystem::path measured() const { return scratch_.path() / "measured.pool"; }
  std::filesystem::path rest() const { return scratch_.path() / "comparator.pool"; }
  std::filesystem::path plain_log() const { return scratch_.path() / "plain.log"; }

  Config config_;
  ScratchDirectory scratch_;
  Records records_;
  std::vector<std::vector<Figure>> rounds_;
  std::uint64_t lost_ = 0;  // answers that differ from what had been acknowledged
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
