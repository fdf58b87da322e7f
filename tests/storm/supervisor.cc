#include "storm/supervisor.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "storm/crash_report.h"
#include "storm/worker.h"

namespace perdix::test::storm {
namespace {

constexpr unsigned kMaxWorkers = 60;  // an episode that needs more does not get on

/// How much slower than alone everything is: threads that want a core, by core.
double load() {
  double average = 0;
  const long cores = std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L);
  if (::getloadavg(&average, 1) != 1) return 1;
  return std::max(1.0, average / static_cast<double>(cores));
}

}  // namespace

Supervisor::Supervisor(Episode episode, std::uint64_t number, std::chrono::seconds bound)
    : episode_(std::move(episode)),
      number_(number),
      bound_(bound),
      folder_(episode_.pools.front().domain),
      ground_(episode_) {
  for (std::size_t i = 0; i < episode_.pools.size(); ++i)
    paths_.push_back((folder_.path() / fmt::format("pool-{}", i)).string());
  start();
}

Supervisor::~Supervisor() {
  if (worker_ <= 0) return;
  ::kill(worker_, SIGKILL);
  ::waitpid(worker_, nullptr, 0);
}

void Supervisor::start() {
  Board& board = ground_.board();
  for (Seat& seat : board.seats) {
    seat.since = 0;
    seat.call = nullptr;
  }
  board.planned_signal = 0;
  board.others_armed = false;
  ++workers_;
  worker_ = ::fork();
  if (worker_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (worker_ == 0) ::_exit(run_worker(episode_, ground_, paths_));
}

bool Supervisor::tick() {
  if (over_) return false;
  int status = 0;
  if (::waitpid(worker_, &status, WNOHANG) == worker_) {
    worker_ = -1;
    judge(status);
    if (!over_) start();
  } else {
    watch();
  }
  return !over_;
}

void Supervisor::judge(int status) {
  Board& board = ground_.board();
  if (board.has_problem) return fail(board.problem.data(), "");
  if (WIFSIGNALED(status)) {
    if (board.planned_signal == WTERMSIG(status)) {
      if (workers_ < kMaxWorkers) return;
      return fail("the episode does not end", "");
    }
    return fail(fmt::format("the process died of signal {} ({})", WTERMSIG(status),
                            ::strsignal(WTERMSIG(status))),
                show_stack(board));
  }
  if (WEXITSTATUS(status) != 0)
    return fail(fmt::format("the process ended with status {}", WEXITSTATUS(status)), "");
  over_ = board.finished;
}

bool Supervisor::over_bound(const Seat& seat) const {
  const std::uint64_t since = seat.since;
  if (since == 0) return false;
  // A storm that is nice gets less than its share of a busy core.
  constexpr double kLessThanItsShare = 4;
  const double seconds = static_cast<double>(static_cast<std::int64_t>(now() - since)) / 1e9;
  const double share = load() > 1 ? load() * kLessThanItsShare : 1;
  return seconds > static_cast<double>(bound_.count()) * share;
}

void Supervisor::watch() {
  Board& board = ground_.board();
  for (const Seat& seat : board.seats) {
    if (!over_bound(seat)) continue;
    const char* call = seat.call;
    const std::string threads = show_threads(worker_);
    ::kill(worker_, SIGKILL);
    ::waitpid(worker_, nullptr, 0);
    worker_ = -1;
    return fail(fmt::format("a call takes longer than {} s: {}", bound_.count(),
                            call != nullptr ? call : "?"),
                threads);
  }
}

std::string Supervisor::where() {
  const Board& board = ground_.board();
  return fmt::format("round {} of {}, worker {}{}", board.round + 1, episode_.rounds.size(),
                     workers_, board.opened ? "" : ", while opening or comparing");
}

void Supervisor::fail(std::string problem, std::string details) {
  report_ = Report{std::move(problem), where(), std::move(details)};
  over_ = true;
}

}  // namespace perdix::test::storm
