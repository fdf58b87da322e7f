// A storm: random configurations of everything together, against models. See kUsage.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <list>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "storm/disturb.h"
#include "storm/plan.h"
#include "storm/summary.h"
#include "storm/supervisor.h"
#include "support/options.h"
#include "support/settings.h"

namespace perdix::test::storm {
namespace {

constexpr std::string_view kUsage =
    R"(perdix_storm: runs random configurations of everything together against models.

  --seconds S          start no new episode after S seconds (default 60); an episode that still runs
                       a minute after twice the time is cut short
  --episodes N         run N episodes, whatever the time
  --seed S             seed of every random choice but the moments of threads (default PERDIX_SEED)
  --episode K          run this episode alone
  --jobs J             episodes at a time (default 2)
  --findings F         stop after F findings (default 1)
  --bound S            seconds that a call may take on an idle machine (default 20)
  --engine E           only this engine
  --kinds K            only these kinds: u64_u64, u64_bytes, bytes_u64 or bytes_bytes
  --shape S            only string keys of this shape
  --without W,...      leave these out: works, disturbances, faults, endings, shapes and more; a
                       wrong word lists them
  --with W,...         of works, disturbances, faults and endings only these, in each place
  --pool-directory D   folder for the pools (default: in memory)
  --keep 1             keep the folders of failed episodes
  --show 1             print the plan of each episode
)";

class Storm {
 public:
  explicit Storm(const Options& options)
      : options_(options),
        seed_(options.number("seed", test::seed())),
        seconds_(static_cast<double>(options.number("seconds", 60))),
        episodes_(options.number("episodes", 0)),
        jobs_(options.number("jobs", 2)),
        most_findings_(options.number("findings", 1)),
        next_(options.number("episode", 0)) {
    selection_ = {options.text("engine"), options.text("kinds"), options.text("shape"),
                  parse_words(options.text("without")), parse_words(options.text("with"))};
    if (!options.text("episode").empty()) episodes_ = 1;
  }

  int run() {
    fmt::print("seed {}\n", seed_);
    while (!running_.empty() || wants_more()) {
      while (running_.size() < jobs_ && wants_more()) start();
      for (auto it = running_.begin(); it != running_.end();) {
        it = (*it)->tick() ? std::next(it) : finish(it);
      }
      if (is_late()) cut_short();
      show_progress();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    summary_.print(seconds());
    return summary_.findings() == 0 ? 0 : 1;
  }

 private:
  using Running = std::list<std::unique_ptr<Supervisor>>;

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

  bool wants_more() const {
    if (summary_.findings() >= most_findings_) return false;
    return episodes_ != 0 ? started_ < episodes_ : seconds() < seconds_;
  }

  /// On a busy machine an episode may take many minutes.
  bool is_late() const { return episodes_ == 0 && seconds() > 2 * seconds_ + 60; }

  void cut_short() {
    for (auto& episode : running_) summary_.add_cut(episode->episode(), episode->counters());
    running_.clear();
  }

  void start() {
    const std::uint64_t number = next_++;
    ++started_;
    Episode episode = make_episode(seed_, number, selection_);
    if (options_.number("show", 0) != 0) fmt::print("episode {}\n{}", number, describe(episode));
    std::fflush(stdout);
    running_.push_back(std::make_unique<Supervisor>(
        std::move(episode), number, std::chrono::seconds(options_.number("bound", 20))));
  }

  Running::iterator finish(Running::iterator it) {
    Supervisor& episode = **it;
    summary_.add(episode.episode(), episode.counters());
    if (episode.report()) {
      summary_.add_finding();
      show_finding(episode);
      if (options_.number("keep", 0) != 0) episode.keep();
    }
    return running_.erase(it);
  }

  void show_finding(Supervisor& episode) {
    const Report& report = *episode.report();
    fmt::print("FINDING in episode {}, {}: {}\n{}", episode.number(), report.where, report.problem,
               describe(episode.episode()));
    if (!report.details.empty()) fmt::print("{}", report.details);
    if (options_.number("keep", 0) != 0) fmt::print("  pools: {}\n", episode.folder());
    fmt::print("replay: {} --seed {} --episode {}{}\n",
               std::filesystem::read_symlink("/proc/self/exe").string(), seed_, episode.number(),
               chosen_options());
    std::fflush(stdout);
  }

  /// Those that change what an episode does.
  std::string chosen_options() const {
    std::string text;
    for (const char* name : {"engine", "kinds", "shape", "without", "with", "bound"}) {
      if (!options_.text(name).empty()) text += fmt::format(" --{} {}", name, options_.text(name));
    }
    return text;
  }

  void show_progress() {
    constexpr double kPeriod = 10;
    if (seconds() < shown_ + kPeriod) return;
    shown_ = seconds();
    summary_.print_progress(shown_);
  }

  const Options& options_;
  std::uint64_t seed_;
  double seconds_;
  std::uint64_t episodes_;
  std::uint64_t jobs_;
  std::uint64_t most_findings_;
  std::uint64_t next_;
  std::uint64_t started_ = 0;
  double shown_ = 0;
  Selection selection_;
  Summary summary_;
  Running running_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace
}  // namespace perdix::test::storm

int main(int argc, char** argv) {
  using namespace perdix::test;
  try {
    const Options options(argc, argv);
    if (!options.text("help").empty()) {
      fmt::print("{}", storm::kUsage);
      return 0;
    }
    if (storm::run_helper(options)) return 0;
    const std::string folder = options.text("pool-directory");
    if (!folder.empty()) ::setenv("PERDIX_TEST_DIR", folder.c_str(), 1);
    return storm::Storm(options).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n\n{}", error.what(), storm::kUsage);
    return 2;
  }
}
