#include "nbtree/experiment.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <perdix/error.h>

#include "common/environment.h"
#include "common/place.h"
#include "nbtree/allocators.h"
#include "nbtree/forms.h"
#include "nbtree/handover.h"
#include "systems/systems.h"
#include "terminal/format.h"
#include "ycsb/phase.h"
#include "ycsb/plan.h"
#include "ycsb/report.h"
#include "ycsb/traffic.h"

namespace perdix::bench::figures {
namespace {

void require(bool condition, const std::string& message) {
  if (!condition) throw Error(Errc::invalid_argument, message);
}

template <class Number>
bool ascending(const std::vector<Number>& numbers) {
  return !numbers.empty() && numbers.front() > 0 &&
         std::ranges::adjacent_find(numbers, std::ranges::greater_equal()) == numbers.end();
}

std::uint64_t most_records(const Config& config) {
  return std::max(config.records + config.operations, config.pairs.back());
}

/// How many of the numbers of threads are above one.
std::uint64_t numbers_above_one(const Config& config) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(config.threads, [](std::uint64_t threads) { return threads > 1; }));
}

bool has_one_thread(const Config& config) {
  return std::ranges::find(config.threads, 1) != config.threads.end();
}

std::uint64_t most_threads(const Config& config) { return std::ranges::max(config.threads); }

/// How many loaded indexes figure "skew" has at a time: one for each thread alone, and one that n
/// threads share, for each n above one.
std::uint64_t indexes_of_skew(const Config& config) {
  return most_threads(config) + numbers_above_one(config);
}

// Files of the largest system, with what it frees late. (Figure "allocator" has three pools of
// less than half as much each.)
std::uint64_t needed_space(const Config& config) {
  constexpr std::uint64_t kFixed = 512 << 20, kRecord = 64;
  const std::uint64_t one = kFixed + most_records(config) * kRecord;
  if (std::ranges::find(config.figures, "skew") == config.figures.end()) return one;
  return std::max(one, indexes_of_skew(config) * (kFixed + config.records * kRecord));
}

std::string threads_text(std::uint64_t threads) {
  return threads == 1 ? "1 thread" : fmt::format("{} threads", threads);
}

/// Reads and updates of records that are chosen by popularity.
Workload mix_of(std::uint64_t write_percent, double theta) {
  Workload mix{"mix", "get and update"};
  mix.percent[static_cast<std::size_t>(OpKind::get)] =
      static_cast<std::uint8_t>(100 - write_percent);
  mix.percent[static_cast<std::size_t>(OpKind::update)] = static_cast<std::uint8_t>(write_percent);
  mix.distribution = Distribution::zipfian;
  mix.theta = theta;
  return mix;
}

/// YCSB's skew, which the figures about leaves that are hot have.
constexpr double kHot = 0.99;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// Percents of writes in figure "locks": write-intensive and read-intensive.
constexpr std::array<std::uint64_t, 2> kIntensities = {80, 20};

constexpr std::uint64_t kLockForms = 3;
constexpr std::uint64_t kLatencyPhases = 5;

/// The phases of figures about forms of NbTree, each with each number of threads.
std::uint64_t phases_of_forms(const std::string& figure, const Config& config) {
  const auto threads = static_cast<std::uint64_t>(config.threads.size());
  if (figure == "conflicts") return threads * kLockForms * 2;
  if (figure == "locks") return threads * kLockForms * (1 + kIntensities.size());
  if (figure == "decoupled") return threads * 2 * 2 * kLatencyPhases;
  return 0;
}

/// How many phases a round has, for the display of progress.
std::uint64_t phases_of(const Config& config) {
  const auto systems = static_cast<std::uint64_t>(config.systems.size());
  const auto persistent = static_cast<std::uint64_t>(std::ranges::count_if(
      config.systems, [](const std::string& name) { return find_system(name).persistent; }));
  std::uint64_t phases = 0;
  for (const std::string& name : config.figures) {
    if (name == "latency") phases += systems * kLatencyPhases;
    if (name == "domain") phases += persistent * 2 * kLatencyPhases;
    if (name == "space") phases += systems * config.pairs.size();
    if (name == "skew") {
      const std::uint64_t mixes = config.thetas.size() * config.writes.size();
      const std::uint64_t phases_per_mix = 2 * numbers_above_one(config) + has_one_thread(config);
      phases += systems * (indexes_of_skew(config) + mixes * phases_per_mix);
    }
    if (name == "allocator") phases += kAllocatorPhases;
    phases += phases_of_forms(name, config);
  }
  return phases;
}

/// Carries out all figures once.
class Round {
 public:
  Round(const Config& config, const std::filesystem::path& parent, Planner& planner,
        std::uint64_t& phases_done)
      : config_(config), parent_(parent), planner_(planner), phases_done_(phases_done) {}

  std::vector<Figure> run() {
    std::vector<Figure> figures;
    for (const std::string& name : config_.figures) figures.push_back(figure(name));
    return figures;
  }

  std::uint64_t wrong() const { return wrong_; }

 private:
  /// An open index and the records in it.
  struct Trial {
    Trial(const Round& round, const std::string& name, unsigned number_of_threads,
          DomainChoice domain)
        : Trial(round, find_system(name), number_of_threads, domain) {}

    /// `to_count`: null, or counts from the first phase that is counted() on.
    Trial(const Round& round, const System& chosen, unsigned number_of_threads, DomainChoice domain,
          Meter* to_count = nullptr)
        : system(chosen), threads(number_of_threads), meter(to_count), directory(round.parent_) {
      if (meter != nullptr) meter->open();
      Setup setup;
      setup.data.seed = round.config_.seed;
      setup.directory = directory.path();
      setup.max_records = most_records(round.config_);
      setup.threads = threads;
      setup.domain = domain;
      store = system.open(setup);
    }

    const System& system;
    unsigned threads;
    Meter* meter;
    ScratchDirectory directory;
    std::unique_ptr<Store> store;
    Records records;
  };

  Figure figure(const std::string& name) {
    if (name == "latency") return latency();
    if (name == "space") return space();
    if (name == "skew") return skew();
    if (name == "allocator") return allocator();
    if (name == "conflicts") return conflicts();
    if (name == "decoupled") return decoupled();
    if (name == "locks") return locks();
    return domain();
  }

  PhaseResult phase(Trial& trial, const Workload& workload, std::uint64_t operations) {
    Store* const store = trial.store.get();
    return phase(trial, {&store, 1}, trial.threads, workload, operations);
  }

  /// On several stores that have the records of the trial, the threads in turn.
  PhaseResult phase(Trial& trial, std::span<Store* const> stores, unsigned threads,
                    const Workload& workload, std::uint64_t operations) {
    const auto plan = planner_.plan(workload, workload.distribution, operations, threads,
                                    config_.seed, trial.records);
    PhaseOptions options;
    options.seed = config_.seed;
    options.stop = config_.stop;
    options.meter = trial.meter;
    if (config_.on_progress) {
      options.on_progress = [&](std::uint64_t done) {
        config_.on_progress({trial.system.name, workload.name, threads, done, operations,
                             phases_done_, config_.repeat * phases_of(config_)});
      };
      options.on_progress(0);  // short phases have no more to say
    }
    if (trial.meter != nullptr) trial.meter->start();
    const PhaseResult result = run_phase(stores, plan, options);
    if (config_.stop != nullptr && config_.stop->load(std::memory_order_relaxed)) throw Cancelled();
    wrong_ += result.wrong;
    ++phases_done_;
    return result;
  }

  static std::vector<Metric> latency_metrics() {
    return {{"mean", Unit::nanoseconds},
            {"p50", Unit::nanoseconds},
            {"p99", Unit::nanoseconds},
            {"p99.9", Unit::nanoseconds}};
  }

  /// Figure 6: an operation at a time, one thread, keys chosen uniformly.
  void add_latencies(Figure& figure, Trial& trial, const std::string& system) {
    phase(trial, find_workload("load"), config_.records);
    for (const char* operation : {"get", "insert", "update", "erase"}) {
      const PhaseResult result = phase(trial, find_workload(operation), config_.operations);
      const auto percentile = [&](double share) {
        return static_cast<double>(result.latency.percentile(share));
      };
      figure.rows.push_back({operation,
                             system,
                             {result.seconds * 1e9 / static_cast<double>(result.done),
                              percentile(50), percentile(99), percentile(99.9)}});
    }
  }

  Figure latency() {
    Figure figure{"latency", "Latency of an operation (fig. 6)", latency_metrics(), {}};
    for (const std::string& name : config_.systems) {
      Trial trial(*this, name, 1, DomainChoice::detect);
      add_latencies(figure, trial, name);
    }
    return by_group(std::move(figure));
  }

  /// Figure 17: the same on caches that survive power failures, and with every line written back.
  Figure domain() {
    Figure figure{"domain", "Latency with eADR and ADR (fig. 17)", latency_metrics(), {}};
    for (const std::string& name : config_.systems) {
      if (!find_system(name).persistent) continue;
      for (const auto& [choice, label] : {std::pair{DomainChoice::cpu_cache, "eADR"},
                                          std::pair{DomainChoice::memory_controller, "ADR"}}) {
        Trial trial(*this, name, 1, choice);
        add_latencies(figure, trial, fmt::format("{}, {}", name, label));
      }
    }
    return by_group(std::move(figure));
  }

  /// Figure 8 and table IV.
  Figure space() {
    Figure figure{"space",
                  "Bytes of a pair of 8-byte key and value (fig. 8, table IV)",
                  {{"DRAM", Unit::bytes}, {"PM", Unit::bytes}},
                  {}};
    for (const std::string& name : config_.systems) {
      Trial trial(*this, name, 1, DomainChoice::detect);
      for (const std::uint64_t pairs : config_.pairs) {
        phase(trial, find_workload("insert"), pairs - trial.records.count());
        const OwnFootprint own = trial.store->footprint();
        const auto each = [&](const std::optional<std::uint64_t>& bytes) {
          return static_cast<double>(bytes.value_or(0)) / static_cast<double>(pairs);
        };
        figure.rows.push_back({terminal::format_count(pairs) + " pairs",
                               name,
                               {each(own.dram_bytes), each(own.stored_bytes)}});
      }
    }
    return by_group(std::move(figure));
  }

  /// Figure 11: how often popular records are chosen, and how many operations write. Beside the
  /// threads that share an index, as many that have one each: what the machine gives two threads
  /// changes with who else uses it. So all of a mix is measured without a pause.
  Figure skew() {
    Figure figure{"skew",
                  "Throughput by skew and share of writes (fig. 11)",
                  {{"throughput", Unit::operations_per_second},
                   {"p99", Unit::nanoseconds},
                   {"to 1 thread", Unit::ratio},
                   {"handover", Unit::nanoseconds}},
                  {}};
    for (const std::string& name : config_.systems) {
      Loaded loaded(*this, name);
      for (const double theta : config_.thetas) {
        for (const std::uint64_t writes : config_.writes)
          add_throughputs(figure, loaded, mix_of(writes, theta),
                          fmt::format("theta {}, {} % writes", theta, writes));
      }
    }
    return by_group(std::move(figure));
  }

  /// Indexes of one kind that were loaded alike.
  struct Loaded {
    Loaded(Round& round, const std::string& name) {
      const auto load = [&](auto& trials, unsigned threads) {
        trials.push_back(std::make_unique<Trial>(round, name, threads, DomainChoice::detect));
        round.phase(*trials.back(), find_workload("load"), round.config_.records);
      };
      for (std::uint64_t i = 0; i < most_threads(round.config_); ++i) {
        load(own, 1);
        stores.push_back(own.back()->store.get());
      }
      for (const std::uint64_t threads : round.config_.threads) {
        if (threads > 1) load(shared, static_cast<unsigned>(threads));
      }
    }

    std::vector<std::unique_ptr<Trial>> own;     // for one thread each
    std::vector<std::unique_ptr<Trial>> shared;  // for each number of threads above one
    std::vector<Store*> stores;                  // of `own`
  };

  void add_throughputs(Figure& figure, Loaded& loaded, const Workload& mix,
                       const std::string& group) {
    const std::string& name = loaded.own.front()->system.name;
    double of_one_thread = 0;
    const auto add = [&](const std::string& system, Trial& trial, std::span<Store* const> stores,
                         unsigned threads) {
      const double before = handover_nanoseconds();
      const PhaseResult result = phase(trial, stores, threads, mix, config_.operations);
      const double throughput = static_cast<double>(result.done) / result.seconds;
      if (threads == 1) of_one_thread = throughput;
      figure.rows.push_back({group,
                             system,
                             {throughput, static_cast<double>(result.latency.percentile(99)),
                              of_one_thread == 0 ? 0 : throughput / of_one_thread,
                              (before + handover_nanoseconds()) / 2}});
    };
    const std::span<Store* const> own = loaded.stores;
    if (has_one_thread(config_)) add(name + ", 1 thread", *loaded.own.front(), own.first(1), 1);
    for (const auto& trial : loaded.shared) {
      Store* const store = trial->store.get();
      add(fmt::format("{}, {} threads", name, trial->threads), *trial, {&store, 1}, trial->threads);
      add(fmt::format("{}, {} x 1 thread", name, trial->threads), *loaded.own.front(),
          own.first(trial->threads), trial->threads);
    }
  }

  static double throughput_of(const PhaseResult& result) {
    return static_cast<double>(result.done) / result.seconds;
  }

  /// Figure 10: all threads update records of one index, a few of which are hot.
  Figure conflicts() {
    Figure figure{"conflicts",
                  "Conflicts in leaves during updates of hot keys (fig. 10)",
                  {{"of a million", Unit::count}, {"throughput", Unit::operations_per_second}},
                  {}};
    for (const std::uint64_t threads : config_.threads) {
      for (const System* form : {&counted(), &write_locks(), &all_locks()}) {
        Trial trial(*this, *form, static_cast<unsigned>(threads), DomainChoice::detect);
        phase(trial, find_workload("load"), config_.records);
        const std::uint64_t before = conflicts_in(*trial.store);
        const PhaseResult result = phase(trial, mix_of(100, kHot), config_.operations);
        const auto found = static_cast<double>(conflicts_in(*trial.store) - before);
        figure.rows.push_back(
            {threads_text(threads),
             form->name,
             {found * 1e6 / static_cast<double>(result.done), throughput_of(result)}});
      }
    }
    return figure;
  }

  /// Figure 14: NbTree, one that locks a leaf for a write, and one that also does for a lookup.
  Figure locks() {
    Figure figure{"locks",
                  "Throughput and latency with locks in leaves (fig. 14)",
                  {{"throughput", Unit::operations_per_second}, {"p99", Unit::nanoseconds}},
                  {}};
    for (const std::uint64_t threads : config_.threads) {
      for (const System* form : {&lock_free(), &write_locks(), &all_locks()}) {
        Trial trial(*this, *form, static_cast<unsigned>(threads), DomainChoice::detect);
        phase(trial, find_workload("load"), config_.records);
        for (const std::uint64_t writes : kIntensities) {
          const PhaseResult result = phase(trial, mix_of(writes, kHot), config_.operations);
          figure.rows.push_back(
              {fmt::format("{} % writes, {}", writes, threads_text(threads)),
               form->name,
               {throughput_of(result), static_cast<double>(result.latency.percentile(99))}});
        }
      }
    }
    return by_group(std::move(figure));
  }

  /// Figure 13: a leaf's metadata in DRAM and in PM. With a meter one thread is counted, which the
  /// clock does not tell.
  Figure decoupled() {
    Figure figure{"decoupled",
                  "Metadata of leaves in DRAM and in PM (fig. 13)",
                  {{"mean", Unit::nanoseconds},
                   {"p50", Unit::nanoseconds},
                   {"lines flushed", Unit::ratio},
                   {"lines written", Unit::ratio},
                   {"lines read", Unit::ratio}},
                  {}};
    const auto meter = make_meter({});
    for (const std::uint64_t threads : config_.threads) {
      for (const auto& [choice, label] : {std::pair{DomainChoice::cpu_cache, "eADR"},
                                          std::pair{DomainChoice::memory_controller, "ADR"}}) {
        for (const System* form : {&lock_free(), &metadata_in_pm()}) {
          Trial trial(*this, *form, static_cast<unsigned>(threads), choice, meter.get());
          const std::string suffix = fmt::format("{}, {}", label, threads_text(threads));
          add_decoupled(figure, trial, suffix);
        }
      }
    }
    return by_group(std::move(figure));
  }

  void add_decoupled(Figure& figure, Trial& trial, const std::string& suffix) {
    phase(trial, find_workload("load"), config_.records);
    for (const char* operation : {"insert", "update", "erase", "get"}) {
      const PhaseResult result = phase(trial, find_workload(operation), config_.operations);
      std::vector<Count> counts;
      if (trial.meter != nullptr) counts = trial.meter->stop();
      const auto each = [&](std::string_view name) {
        double sum = 0;
        for (const Count& count : counts)
          sum += count.name == name ? static_cast<double>(count.value) : 0;
        return counts.empty() ? kUnknown : sum / static_cast<double>(result.done);
      };
      figure.rows.push_back(
          {fmt::format("{}, {}", operation, suffix),
           trial.system.name,
           {result.seconds * 1e9 / static_cast<double>(result.done),
            static_cast<double>(result.latency.percentile(50)), each("lines flushed"),
            each("PM lines written"), each("PM lines read")}});
    }
  }

  /// Figure 15: NbTree's inserts, and what the allocator takes of them.
  Figure allocator() {
    const auto on_phase = [&](const char* phase) {
      const std::uint64_t all = config_.repeat * phases_of(config_);
      if (config_.on_progress)
        config_.on_progress({"nbtree", phase, 1, 0, config_.operations, phases_done_, all});
      ++phases_done_;
    };
    const AllocatorResults results = compare_allocators(config_, parent_, on_phase);
    wrong_ += results.wrong;
    Figure figure{"allocator",
                  "Inserts of NbTree by allocator (fig. 15)",
                  {{"throughput", Unit::operations_per_second},
                   {"allocator", Unit::nanoseconds},
                   {"modification", Unit::nanoseconds}},
                  {}};
    const auto inserts = static_cast<double>(config_.operations);
    for (const AllocatorResult& result : results.allocators) {
      const double each = static_cast<double>(std::max<std::uint64_t>(result.replacements, 1));
      // Nothing can be told where Calloc alone has taken longer than the inserts that it is part
      // of.
      const bool told = result.insert_seconds > result.allocator_seconds;
      figure.rows.push_back(
          {"insert",
           result.name,
           {told ? inserts / result.insert_seconds : 0, result.allocator_seconds * 1e9 / inserts,
            result.allocator_seconds * 1e9 / each}});
    }
    return figure;
  }

  const Config& config_;
  const std::filesystem::path& parent_;
  Planner& planner_;
  std::uint64_t& phases_done_;
  std::uint64_t wrong_ = 0;
};

}  // namespace

std::vector<std::string> figure_names() { return Config().figures; }

void validate(const Config& config) {
  require(!config.systems.empty(), "name at least one system");
  require(!config.figures.empty(), "name at least one figure");
  for (const std::string& name : config.systems) find_system(name);
  const std::vector<std::string> names = figure_names();
  for (const std::string& name : config.figures) {
    require(std::ranges::find(names, name) != names.end(),
            fmt::format("no figure '{}'; choose from: {}", name, fmt::join(names, ", ")));
  }
  constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 36;
  require(config.records > 0 && config.records < kMaxCount, "records must be between 1 and 2^36");
  require(config.operations > 0 && config.operations <= config.records,
          "operations must be between 1 and the number of records, each of which is erased once");
  require(ascending(config.pairs) && config.pairs.back() < kMaxCount,
          "numbers of pairs must ascend and be between 1 and 2^36");
  require(ascending(config.thetas) && config.thetas.back() < 2,
          "thetas must ascend and be between 0 and 2");
  for (const std::uint64_t percent : config.writes)
    require(percent <= 100, "shares of writes are percents, 0 to 100");
  for (const std::uint64_t threads : config.threads)
    require(threads > 0 && threads <= 1024, "threads: 1 to 1024");
  require(!config.writes.empty() && !config.threads.empty(),
          "name at least one share of writes and one number of threads");
  require(config.repeat > 0 && config.repeat <= 1000, "repeat must be between 1 and 1000");
}

Report run(const Config& config) {
  validate(config);
  const ScratchDirectory scratch(config.pool_dir.empty() ? default_parent(needed_space(config))
                                                         : config.pool_dir);
  Report report{config,
                scratch.path().string(),
                file_system_of(scratch.path()),
                machine_description(),
                build_description(),
                {},
                0};
  Planner planner(std::max({config.records, config.operations, config.pairs.back()}));
  std::vector<std::vector<Figure>> rounds;
  std::uint64_t phases_done = 0;
  for (std::uint64_t i = 0; i < config.repeat; ++i) {
    Round round(config, scratch.path(), planner, phases_done);
    rounds.push_back(round.run());
    report.wrong += round.wrong();
  }
  report.figures = medians(rounds);
  return report;
}

}  // namespace perdix::bench::figures
