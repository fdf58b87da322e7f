// Runs engines under schedules that depend on a seed, and checks that the results are durably
// linearizable. `schedule_fuzzer --help` lists the options.
//
// Exit status: 0 if all were; 1 if one was not, and the last line is the command that runs it
// again.
#include "testing/linearizability/schedule_fuzzer.h"

#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <perdix/index.h>

#include "testing/engine_traits.h"
#include "testing/linearizability/index_system.h"
#include "util/test_directory.h"

namespace perdix::testing {
namespace {

struct Options {
  std::string engine = "sptree";
  std::string keys = "u64";
  std::string values = "u64";
  std::string domain = "cpu_cache";
  std::uint64_t seed = 1;
  std::uint64_t runs = 100;
  double seconds = 0;
  bool reopen = false;
  std::uint64_t dram_budget = 0;
  std::optional<std::uint64_t> dram_budget_after;
  std::string technique = "none";
  bool full = false;
  bool growing = false;
  bool straight = false;
  std::string beginning;
  std::string suppress;
  bool sites = false;
  bool steps = false;
};

const std::map<std::string, Technique> kTechniques = {
    {"none", Technique::none}, {"b", Technique::b}, {"bo", Technique::bo}, {"boc", Technique::boc}};

const std::map<std::string, Beginning> kBeginnings = {{"few", Beginning::few},
                                                      {"full", Beginning::full},
                                                      {"little", Beginning::little},
                                                      {"contested", Beginning::contested},
                                                      {"contested-full", Beginning::contested_full},
                                                      {"sparse", Beginning::sparse},
                                                      {"edge", Beginning::edge},
                                                      {"many", Beginning::many}};

/// A folder that is removed at the end; on a tmpfs, where there is one.
void add_options(CLI::App& app, Options& options) {
  const auto one_of = [](std::vector<std::string> words) {
    return CLI::IsMember(std::move(words));
  };
  app.add_option("--engine", options.engine, "Engine")->check(one_of(Index::engines(plugins())));
  app.add_option("--keys", options.keys, "Kind of keys")->check(one_of({"u64", "bytes"}));
  app.add_option("--values", options.values, "Kind of values")->check(one_of({"u64", "bytes"}));
  app.add_option("--domain", options.domain, "What a crash leaves")
      ->check(one_of({"cpu_cache", "memory_controller", "page_cache"}));
  app.add_option("--seed", options.seed, "The first seed");
  app.add_option("--runs", options.runs, "How many seeds");
  app.add_option("--seconds", options.seconds, "Go on for so long instead of --runs");
  app.add_flag("--reopen", options.reopen,
               "Half of the indexes are closed and opened again before");
  app.add_option("--dram-budget", options.dram_budget, "Bytes for write buffers")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--dram-budget-after", options.dram_budget_after,
                 "The same once an index is opened again; else as before")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--technique", options.technique,
                 "What Cceh, FastFair and SkipList do with --dram-budget")
      ->check(one_of({"none", "b", "bo", "boc"}));
  std::vector<std::string> beginnings;
  for (const auto& [name, beginning] : kBeginnings) beginnings.push_back(name);
  app.add_option("--beginning", options.beginning, "What threads begin with; else it is drawn")
      ->check(one_of(beginnings));
  app.add_flag("--full", options.full, "The pools have little or no space left");
  app.add_flag("--growing", options.growing, "What has a fixed size in small indexes grows");
  app.add_flag("--straight", options.straight, "Pairs of ElimDa come straight to its table");
  app.add_option("--suppress", options.suppress,
                 "Leave out a call site: file:line:column:flush or ...:fence");
  app.add_flag("--sites", options.sites, "List the call sites that were seen");
  app.add_flag("--steps", options.steps, "List how often each named step was taken");
  for (CLI::Option* option : app.get_options()) option->capture_default_str();
}

class Campaign {
 public:
  explicit Campaign(const Options& options)
      : options_(options), make_(index_systems(system_options())) {
    if (options_.suppress.empty()) return;
    const std::size_t colon = options_.suppress.rfind(':');
    sites_.suppress(
        options_.suppress.substr(0, colon),
        options_.suppress.substr(colon + 1) == "fence" ? Event::Kind::fence : Event::Kind::flush);
  }

  int run() {
    for (std::uint64_t seed = options_.seed; !over(seed); ++seed) {
      const ScheduleOutcome outcome = run_schedule(make_, seed, sites_);
      operations_ += outcome.operations;
      points_ += outcome.points;
      crashes_ += outcome.crashed;
      again_ += outcome.again;
      for (const auto& [name, count] : outcome.steps) steps_[name] += count;
      ++runs_;
      if (!outcome.problems.empty()) return show(outcome, seed);
    }
    std::cout << fmt::format(
        "{}: {} schedules from seed {}, {} operations, {} scheduling points, {} crashes, "
        "after {} of which threads went on: all durably linearizable\n",
        what(), runs_, options_.seed, operations_, points_, crashes_, again_);
    if (options_.sites) show_sites();
    if (options_.steps) show_steps();
    return 0;
  }

 private:
  using SteadyClock = std::chrono::steady_clock;

  IndexSystemOptions system_options() const {
    const auto kind = [](const std::string& name) {
      return name == "u64" ? Kind::u64 : Kind::bytes;
    };
    const std::map<std::string, DomainChoice> domains = {
        {"cpu_cache", DomainChoice::cpu_cache},
        {"memory_controller", DomainChoice::memory_controller},
        {"page_cache", DomainChoice::page_cache}};
    return {options_.engine,
            kind(options_.keys),
            kind(options_.values),
            domains.at(options_.domain),
            folder_.path(),
            options_.reopen,
            options_.dram_budget,
            options_.dram_budget_after.value_or(options_.dram_budget),
            kTechniques.at(options_.technique),
            options_.full,
            options_.growing,
            options_.straight,
            options_.beginning.empty() ? std::nullopt
                                       : std::optional(kBeginnings.at(options_.beginning))};
  }

  bool over(std::uint64_t seed) const {
    if (options_.seconds > 0) {
      const std::chrono::duration<double> passed = SteadyClock::now() - begin_;
      return passed.count() >= options_.seconds;
    }
    return seed - options_.seed >= options_.runs;
  }

  std::string what() const {
    return fmt::format("{} {} -> {}, {}", options_.engine, options_.keys, options_.values,
                       options_.domain);
  }

  void show_sites() const {
    for (const Sites::Use& use : sites_.uses()) {
      std::cout << fmt::format("site {} flushes {} fences {} {}\n", use.name, use.flushes,
                               use.fences, use.function);
    }
  }

  void show_steps() const {
    for (const auto& [name, count] : steps_) std::cout << fmt::format("step {} {}\n", count, name);
  }

  std::string budgets() const {
    std::string text;
    if (options_.dram_budget != 0) text += fmt::format(" --dram-budget {}", options_.dram_budget);
    if (options_.technique != "none") text += fmt::format(" --technique {}", options_.technique);
    if (options_.dram_budget_after)
      text += fmt::format(" --dram-budget-after {}", *options_.dram_budget_after);
    return text;
  }

  int show(const ScheduleOutcome& outcome, std::uint64_t seed) const {
    std::cout << fmt::format("{}: seed {} is not durably linearizable\n", what(), seed);
    for (const std::string& problem : outcome.problems) std::cout << problem << '\n';
    std::cout << fmt::format(
        "schedule_fuzzer --engine {} --keys {} --values {} --domain {} --seed {} --runs "
        "1{}{}{}{}{}{}{}\n",
        options_.engine, options_.keys, options_.values, options_.domain, seed,
        options_.reopen ? " --reopen" : "", options_.full ? " --full" : "",
        options_.growing ? " --growing" : "", options_.straight ? " --straight" : "",
        options_.beginning.empty() ? "" : " --beginning " + options_.beginning, budgets(),
        options_.suppress.empty() ? "" : " --suppress " + options_.suppress);
    return 1;
  }

  testing_files::TempDirectory folder_{testing_files::memory_directory()};
  const Options& options_;
  MakeSystem make_;
  CallSites sites_;
  Steps steps_;
  SteadyClock::time_point begin_ = SteadyClock::now();
  std::uint64_t runs_ = 0;
  std::uint64_t operations_ = 0;
  std::uint64_t points_ = 0;
  std::uint64_t crashes_ = 0;
  std::uint64_t again_ = 0;
};

}  // namespace
}  // namespace perdix::testing

int main(int argc, char** argv) {
  CLI::App app("Looks for schedules after which an index is not durably linearizable");
  perdix::testing::Options options;
  perdix::testing::add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    return perdix::testing::Campaign(options).run();
  } catch (const std::exception& error) {
    std::cerr << "schedule_fuzzer: " << error.what() << '\n';
    return 2;
  }
}
