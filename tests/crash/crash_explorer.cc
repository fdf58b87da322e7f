// Explores crash states for a given time, or opens one state again.
//
//   crash_explorer --seconds 60 --seed 7 --engine sptree --domain memory_controller
//   crash_explorer --subject calloc --domain page_cache --seed 42 --replay 117:3/20:0
//
// Exit status: 0 if all states were correct; 1 if one was not, with the command that opens it
// again; 2 for a wrong command line.
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "crash/plugged_subjects.h"
#include "samples/points/subject.h"
#include "testing/explorer.h"
#include "testing/subjects/subjects.h"

namespace {

using namespace perdix;
using namespace perdix::testing;
using Clock = std::chrono::steady_clock;

/// The sample engines too, and users' indexes.
std::vector<SubjectEntry> all_subjects() {
  std::vector<SubjectEntry> all = subjects();
  all.push_back(samples::points::subject());
  for (SubjectEntry& entry : plugged_subjects()) all.push_back(std::move(entry));
  return all;
}

// One opening takes a millisecond. The first limit is processor time, because a busy machine may
// give the process little of it. The second limit finds a thread that sleeps without end.
constexpr unsigned kHangProcessorSeconds = 30;
constexpr unsigned kHangSeconds = 600;
constexpr std::chrono::seconds kProgressEvery{15};

struct Arguments {
  double seconds = 60;
  std::uint64_t seed = 1;
  std::uint64_t rounds = 0;
  std::uint64_t total = 0;
  std::string engine;  // a subject whose name begins so
  std::string kinds;
  std::string domain;
  std::string replay;
  std::string save;
  std::string suppress;
  unsigned threads = 0;
  unsigned steps = 16;
  unsigned jobs = 1;
  std::uint64_t images = ExplorerOptions{}.images_of_round;
  bool sites = false;
  bool named_steps = false;
  bool list = false;
  bool one_kind = false;
};

/// One subject in one domain with a number of threads.
struct Target {
  SubjectEntry entry;
  detail::pm::Domain domain;
  unsigned threads;
};

// What is being opened, for a handler of signals.
char current_command[512] = "nothing yet\n";

void note_current(const std::string& command) {
  const std::size_t n = std::min(command.size(), sizeof(current_command) - 2);
  std::memcpy(current_command, command.data(), n);
  current_command[n] = '\n';
  current_command[n + 1] = 0;
}

void die(int signal) {
  const bool hangs = signal == SIGALRM || signal == SIGPROF;
  const char* what =
      hangs ? "FAILED: an opening hangs. Replay:\n" : "FAILED: an opening crashed. Replay:\n";
  (void)!::write(STDOUT_FILENO, what, std::strlen(what));
  (void)!::write(STDOUT_FILENO, current_command, std::strlen(current_command));
  ::signal(signal, SIG_DFL);
  if (hangs) ::_exit(1);
  ::raise(signal);
}

/// From now on, until the next call.
void watch_for_hang(bool watch) {
  itimerval timer{};
  timer.it_value.tv_sec = watch ? kHangProcessorSeconds : 0;
  ::setitimer(ITIMER_PROF, &timer, nullptr);
  ::alarm(watch ? kHangSeconds : 0);
}

std::string command(const Target& target, std::uint64_t seed, const Path& path,
                    const Arguments& arguments) {
  std::string text = fmt::format(
      "crash_explorer --engine {} --domain {} --seed {} --threads {} --steps {}", target.entry.name,
      detail::pm::to_string(target.domain), seed, target.threads, arguments.steps);
  if (!arguments.suppress.empty()) text += " --suppress " + arguments.suppress;
  return text + (path.empty() ? " --rounds 1" : " --replay " + to_string(path));
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Totals {
  std::uint64_t images = 0;
  std::uint64_t states = 0;
};

/// Whether keys are of one kind and values of the other.
bool has_two_kinds(std::string_view subject) {
  return subject.ends_with(":u64:bytes") || subject.ends_with(":bytes:u64");
}

/// Explores the targets of one job of several.
class Campaign {
 public:
  Campaign(const Arguments& arguments, unsigned job)
      : arguments_(arguments),
        job_(job),
        end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(arguments.seconds))),
        last_report_(Clock::now()) {}

  int run() {
    const std::vector<Target> all = choose();
    if (all.empty()) {
      std::cerr << "no subject or domain of that name; there are:";
      for (const SubjectEntry& entry : all_subjects()) std::cerr << ' ' << entry.name;
      std::cerr << '\n';
      return 2;
    }
    // In pairs: of neighbours, one has several threads, which take longer.
    std::vector<Target> targets;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i / 2 % arguments_.jobs == job_) targets.push_back(all[i]);
    }
    const std::uint64_t share = (arguments_.total * targets.size() + all.size() - 1) / all.size();
    for (std::size_t i = 0; i < targets.size(); ++i) {
      // What is left of the time or of the images in equal parts.
      const std::uint64_t left = targets.size() - i;
      target_end_ = Clock::now() + (end_ - Clock::now()) / static_cast<long>(left);
      target_images_ = share > totals_.images ? (share - totals_.images + left - 1) / left : 0;
      if (!explore(targets[i])) return 1;
    }
    return 0;
  }

  const Totals& totals() const { return totals_; }

 private:
  std::vector<Target> choose() const {
    std::vector<Target> targets;
    for (const SubjectEntry& entry : all_subjects()) {
      const std::string wanted =
          arguments_.engine + (arguments_.kinds.empty() ? "" : ":" + arguments_.kinds);
      if (entry.name.compare(0, wanted.size(), wanted) != 0) continue;
      if (arguments_.one_kind && has_two_kinds(entry.name)) continue;
      for (const detail::pm::Domain domain :
           {detail::pm::Domain::cpu_cache, detail::pm::Domain::memory_controller,
            detail::pm::Domain::page_cache}) {
        if (!arguments_.domain.empty() && arguments_.domain != detail::pm::to_string(domain))
          continue;
        if (arguments_.threads != 0) {
          targets.push_back({entry, domain, arguments_.threads});
        } else {
          targets.push_back({entry, domain, 1});
          if (entry.threads > 1)
            targets.push_back(
                {entry, domain, static_cast<unsigned>(2 + targets.size() % (entry.threads - 1))});
        }
      }
    }
    return targets;
  }

  ExplorerOptions options(const Target& target) {
    ExplorerOptions options;
    options.domain = target.domain;
    options.threads = target.threads;
    options.steps = arguments_.steps;
    options.images_of_round = arguments_.images;
    options.before_image = [this, target](std::uint64_t seed, const Path& path) {
      note_current(command(target, seed, path, arguments_));
      watch_for_hang(true);
      report_progress(target);
      return go_on(seed - arguments_.seed);
    };
    if (!arguments_.suppress.empty()) {
      const std::size_t colon = arguments_.suppress.rfind(':');
      options.suppressed_site = arguments_.suppress.substr(0, colon);
      options.suppressed_kind = arguments_.suppress.substr(colon + 1) == "fence"
                                    ? Event::Kind::fence
                                    : Event::Kind::flush;
    }
    if (!arguments_.save.empty()) {
      options.on_failure = [this](const std::byte* image, std::uint64_t size) {
        std::ofstream(arguments_.save, std::ios::binary)
            .write(reinterpret_cast<const char*>(image), static_cast<std::streamsize>(size));
      };
    }
    return options;
  }

  bool explore(const Target& target) {
    const auto subject = target.entry.make(target.domain);
    Explorer explorer(*subject, options(target));
    const Clock::time_point began = Clock::now();
    explorer_ = &explorer;
    std::optional<Failure> failure;
    if (!arguments_.replay.empty()) {
      failure = explorer.replay(arguments_.seed, parse_path(arguments_.replay));
    } else {
      for (std::uint64_t round = 0; !failure && go_on(round); ++round) {
        note_current(command(target, arguments_.seed + round, {}, arguments_));
        watch_for_hang(true);
        failure = explorer.round(arguments_.seed + round);
      }
    }
    watch_for_hang(false);
    report(target, explorer, seconds_since(began));
    if (failure) report(target, *failure);
    return !failure;
  }

  /// Whether the current target has not yet had its share: of rounds, of images or of time.
  bool go_on(std::uint64_t round) const {
    if (!arguments_.replay.empty()) return true;
    if (arguments_.rounds != 0) return round < arguments_.rounds;
    if (arguments_.total != 0) return explorer_->counts().images < target_images_;
    return Clock::now() < target_end_;
  }

  void report_progress(const Target& target) {
    if (Clock::now() - last_report_ < kProgressEvery) return;
    last_report_ = Clock::now();
    std::cout << fmt::format("... {} {} {} threads: {} images, {} with those before\n",
                             target.entry.name, detail::pm::to_string(target.domain),
                             target.threads, explorer_->counts().images,
                             totals_.images + explorer_->counts().images)
              << std::flush;
  }

  void report(const Target& target, Explorer& explorer, double seconds) {
    const Counts& c = explorer.counts();
    last_report_ = Clock::now();
    totals_.images += c.images;
    totals_.states += c.states;
    std::cout << fmt::format(
                     "{:18} {:17} {} threads: {:4} rounds, {:7} moments ({} exhaustive), {:8} "
                     "states, {:8} images (in recovery {} + {} + {}), {:.0f}/s\n",
                     target.entry.name, detail::pm::to_string(target.domain), target.threads,
                     c.rounds, c.moments, c.exhaustive, c.states, c.images, c.by_level[1],
                     c.by_level[2], c.by_level[3], static_cast<double>(c.images) / seconds)
              << std::flush;
    if (arguments_.named_steps) {
      for (const auto& [name, count] : explorer.steps())
        std::cout << fmt::format("step {} {}\n", count, name);
    }
    if (!arguments_.sites) return;
    for (const Sites::Use& use : explorer.sites().uses()) {
      std::cout << fmt::format("site {} flushes {} fences {} {}\n", use.name, use.flushes,
                               use.fences, use.function);
    }
  }

  void report(const Target& target, const Failure& failure) {
    std::cout << fmt::format("FAILED: {}\n", failure.moment);
    for (const std::string& problem : failure.problems) std::cout << "  " << problem << '\n';
    std::cout << "Replay:\n"
              << command(target, failure.seed, failure.path, arguments_) << '\n'
              << std::flush;
  }

  const Arguments& arguments_;
  unsigned job_;
  Clock::time_point end_;
  Clock::time_point last_report_;
  Clock::time_point target_end_;
  std::uint64_t target_images_ = 0;
  Explorer* explorer_ = nullptr;
  Totals totals_;
};

/// One process for each job: a process has one probe. Returns the worst exit status.
int run_jobs(const Arguments& arguments, Totals& totals) {
  struct Job {
    pid_t pid;
    int totals;
  };
  std::vector<Job> jobs;
  for (unsigned job = 0; job < arguments.jobs; ++job) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe for a job");
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error("no process for a job");
    if (pid == 0) {
      Campaign campaign(arguments, job);
      const int status = campaign.run();
      (void)!::write(ends[1], &campaign.totals(), sizeof(Totals));
      ::_exit(status);
    }
    ::close(ends[1]);
    jobs.push_back({pid, ends[0]});
  }
  int worst = 0;
  for (const Job& job : jobs) {
    int status = 0;
    Totals of_job;
    const bool counted = ::read(job.totals, &of_job, sizeof of_job) == sizeof of_job;
    ::close(job.totals);
    ::waitpid(job.pid, &status, 0);
    totals.images += counted ? of_job.images : 0;
    totals.states += counted ? of_job.states : 0;
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  return worst;
}

int run(const Arguments& arguments) {
  const Clock::time_point start = Clock::now();
  Totals totals;
  int status = 0;
  if (arguments.jobs == 1) {
    Campaign campaign(arguments, 0);
    status = campaign.run();
    totals = campaign.totals();
  } else {
    status = run_jobs(arguments, totals);
  }
  if (status != 2) {
    std::cout << fmt::format("{} distinct images, {} states, {}, {:.0f} s\n", totals.images,
                             totals.states, status == 0 ? "all sound" : "not all sound",
                             seconds_since(start));
  }
  return status;
}

/// The allocator spreads threads by the addresses of their stacks: without randomised addresses
/// each run is like the last.
void without_random_addresses(char** argv) {
  const int now = ::personality(0xffffffff);
  if (now == -1 || (now & ADDR_NO_RANDOMIZE) != 0) return;
  if (::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) == -1) return;
  ::execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  without_random_addresses(argv);
  // An opening that uses a few bytes of a huge page would wait for all of it to be cleared.
  ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  Arguments arguments;
  CLI::App app("Explores the states that crashes leave");
  app.add_option("--seconds", arguments.seconds, "how long, over all subjects and domains");
  app.add_option("--seed", arguments.seed, "of the first round");
  app.add_option("--rounds", arguments.rounds, "of each subject and domain, instead of --seconds");
  app.add_option("--total", arguments.total,
                 "distinct images over all subjects and domains, instead of --seconds");
  app.add_flag("--list", arguments.list, "list the subjects");
  app.add_option("--engine,--subject", arguments.engine, "only subjects whose name begins so");
  app.add_option("--kinds", arguments.kinds,
                 "only these kinds of keys and values, for example u64:bytes");
  app.add_flag("--one-kind", arguments.one_kind,
               "leave out subjects whose keys are of one kind and values of the other");
  app.add_option("--domain", arguments.domain,
                 "cpu_cache, memory_controller or page_cache; all if not given");
  app.add_option("--threads", arguments.threads, "of the workload");
  app.add_option("--steps", arguments.steps, "of each thread in a round");
  app.add_option("--jobs", arguments.jobs, "processes that share the work")
      ->check(CLI::Range(1, 1024));
  app.add_option("--images", arguments.images, "of a round, about");
  app.add_option("--replay", arguments.replay,
                 "open the image at event:image/event:image... of the round --seed");
  app.add_option("--save", arguments.save, "write an image that fails to this file");
  app.add_option("--suppress", arguments.suppress,
                 "leave out a call site: file:line:column:flush or ...:fence");
  app.add_flag("--sites", arguments.sites, "list the call sites that were seen");
  app.add_flag("--named-steps", arguments.named_steps, "list how often each named step was taken");
  CLI11_PARSE(app, argc, argv);
  if (arguments.list) {
    for (const SubjectEntry& entry : all_subjects()) std::cout << entry.name << '\n';
    return 0;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM, SIGPROF})
    ::signal(signal, die);
  try {
    return run(arguments);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
