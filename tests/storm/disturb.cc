#include "storm/disturb.h"

#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "index/test_options.h"
#include "storm/crash_report.h"
#include "storm/faults.h"
#include "storm/verify.h"
#include "support/compare.h"

namespace perdix::test::storm {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kChildBound = seconds(20);
constexpr auto kOrphanLife = seconds(3);
constexpr std::uint64_t kMaxCopied = 96 << 20;        // bytes of a file that is copied alive
constexpr std::uint32_t kForgedVersion = 0x7ffffff0;  // what a child writes: never in the model
constexpr std::string_view kOtherName = "other";

// What a child's exit status says.
enum ChildStatus { kRefused = 0, kSucceeded = 10, kOtherError = 11, kOtherException = 12 };

void pause_between(Scene& scene) {
  std::this_thread::sleep_for(microseconds(scene.rng.between(100, 5000)));
}

OpenIndex& any_index(Scene& scene) { return *scene.indexes[scene.rng.below(scene.indexes.size())]; }

// --- Forked children
// ------------------------------------------------------------------------------

/// In a child: a call must be refused. The code is found by its name.
void expect_forked(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    ::_exit(to_string(error.code()) == "forked" ? kRefused : kOtherError);
  } catch (...) {
    ::_exit(kOtherException);
  }
  ::_exit(kSucceeded);
}

struct ChildDeed {
  const char* name;
  void (*run)(Scene& scene, OpenIndex& index);
};

constexpr std::array kDeeds = {
    ChildDeed{"_exit", [](Scene&, OpenIndex&) { ::_exit(0); }},
    ChildDeed{
        "get",
        [](Scene&, OpenIndex& index) { expect_forked([&] { index.index.get(index.key(0)); }); }},
    ChildDeed{"put",
              [](Scene&, OpenIndex& index) {
                expect_forked([&] {
                  index.index.put(index.key(0), index.plan.values({0, kForgedVersion}));
                });
              }},
    ChildDeed{
        "erase",
        [](Scene&, OpenIndex& index) { expect_forked([&] { index.index.erase(index.key(0)); }); }},
    ChildDeed{"scan",
              [](Scene&, OpenIndex& index) {
                expect_forked(
                    [&] { index.index.visit_all([](DatumView, DatumView) { return false; }); });
              }},
    ChildDeed{"size", [](Scene&, OpenIndex& index) { expect_forked([&] { index.index.size(); }); }},
    ChildDeed{"close",
              [](Scene&, OpenIndex& index) { expect_forked([&] { index.pool.close(); }); }},
    ChildDeed{
        "drop",
        [](Scene&, OpenIndex& index) { expect_forked([&] { index.pool.drop(index.plan.name); }); }},
    ChildDeed{"destructors",
              [](Scene& scene, OpenIndex&) {
                scene.indexes.clear();
                scene.pools.clear();
                ::_exit(0);
              }},
    ChildDeed{"destructors and exit",
              [](Scene& scene, OpenIndex&) {
                scene.indexes.clear();
                scene.pools.clear();
                std::exit(0);
              }},
};

/// Forks. The child holds the file's lock until its fork handlers have run. If the owner were
/// killed before that, the pool would stay in use for that time, so nothing kills this process
/// until then.
pid_t fork_and_wait(Scene& scene) {
  const std::lock_guard lock(scene.starting);
  const std::uint64_t before = scene.board.counters.forks;
  const pid_t child = ::fork();
  if (child == 0) ++scene.board.counters.forks;
  require(child >= 0, "the storm can't fork");
  while (child > 0 && scene.board.counters.forks == before)
    std::this_thread::sleep_for(microseconds(50));
  return child;
}

/// Forks and runs `body` in the child, which ends with this process. Returns the pid.
pid_t fork_child(Scene& scene, const std::function<void()>& body) {
  const pid_t parent = ::getpid();
  const pid_t child = fork_and_wait(scene);
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS}) std::signal(signal, SIG_DFL);
  body();
  ::_exit(0);
}

/// Waits for a child; nothing if it does not end, and then it is killed.
std::optional<int> await_child(pid_t child) {
  int status = 0;
  for (const std::uint64_t begin = now();;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (std::chrono::nanoseconds(now() - begin) > kChildBound) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return std::nullopt;
    }
    std::this_thread::sleep_for(microseconds(200));
  }
}

void expect_owned(Scene& scene, const char* when) {
  const Call marked(scene.board.seats[0], "a second open");
  for (unsigned i = 0; i < scene.paths.size(); ++i) {
    // A failed sync has taken the lock from it (descriptors.h).
    if (scene.board.descriptor_lost[i] && scene.board.faults_on) continue;
    const Outcome outcome = attempt("Pool::open", [&] { Pool::open(scene.paths[i]); });
    require(outcome.threw && outcome.code == Errc::in_use,
            fmt::format("a second owner is let in {}: {}", when,
                        outcome.threw ? outcome.text : "open() succeeds"));
  }
}

void fork_once(Scene& scene) {
  const ChildDeed& deed = kDeeds[scene.rng.below(kDeeds.size())];
  OpenIndex& index = any_index(scene);
  const pid_t child = fork_child(scene, [&] { deed.run(scene, index); });
  const auto status = await_child(child);
  require(status.has_value(), fmt::format("a forked child hangs in {}", deed.name));
  require(!WIFSIGNALED(*status),
          fmt::format("a forked child dies of signal {} in {}", WTERMSIG(*status), deed.name));
  const int code = WEXITSTATUS(*status);
  require(code == kRefused,
          fmt::format("{} in a forked child {}", deed.name,
                      code == kSucceeded        ? "succeeds"
                      : code == kOtherException ? "throws what is no perdix::Error"
                                                : "throws another Error than forked"));
  expect_owned(scene, fmt::format("after {} in a forked child", deed.name).c_str());
}

// --- Live copies
// ----------------------------------------------------------------------------------

std::vector<Snapshot> snapshot_of(const OpenIndex& index) {
  std::vector<Snapshot> states;
  states.reserve(index.plan.count);
  for (std::uint32_t i = 0; i < index.plan.count; ++i)
    states.push_back(index.model.cells[i].load());
  return states;
}

/// A copy that opened without complaint: each key must have a state that it had while the file was
/// copied.
void compare_copy(const OpenIndex& index, const AnyIndex& copy, const std::vector<Snapshot>& before,
                  Seat& seat) {
  for (std::uint32_t i = 0; i < index.plan.count; ++i) {
    const Call marked(seat, "get from a copy");
    const auto value = copy.get(index.key(i));
    const auto tag = value ? index.plan.values.read(*value) : std::nullopt;
    require(!value || (tag && tag->key == i),
            fmt::format("a live copy opens without complaint and serves a damaged value ({})",
                        index.plan.type->engine));
    const Found found = tag ? Found(tag->version) : Found{};
    require(allows(before[i], index.model.cells[i].load(), found),
            fmt::format("a live copy opens without complaint and serves {} for a key that had {}",
                        show(found), show(before[i].decided)));
  }
}

/// A copy that was refused and then found sound is torn all the same: what moved or was written
/// while it was copied may be missing, old or in part. It must be possible to use it.
void use_torn_copy(const OpenIndex& index, const AnyIndex& copy, Seat& seat) {
  for (std::uint32_t i = 0; i < index.plan.count; ++i) {
    const Call marked(seat, "get from a torn copy");
    copy.get(index.key(i));
  }
}

void copy_once(Scene& scene) {
  const unsigned number = static_cast<unsigned>(scene.rng.below(scene.pools.size()));
  const std::string& path = scene.paths[number];
  const std::string copy = path + ".copy";
  Seat& seat = scene.board.seats[0];
  if (fs::file_size(path) > kMaxCopied) return;
  std::vector<std::pair<OpenIndex*, std::vector<Snapshot>>> before;
  for (auto& index : scene.indexes) {
    if (index->plan.pool == number) before.emplace_back(index.get(), snapshot_of(*index));
  }
  // If the file's length changes during the copy, only a part is copied, which is an error.
  std::error_code error;
  fs::copy_file(path, copy, fs::copy_options::overwrite_existing, error);
  ++scene.board.counters.copies;
  std::optional<Pool> pool;
  const auto open = [&] {
    const Call marked(seat, "open a live copy");
    return attempt("Pool::open",
                   [&] { pool.emplace(Pool::open(copy, options_for_all_engines())); });
  };
  const bool refused = open().threw;
  if (refused) {
    ++scene.board.counters.copies_refused;
    CheckReport report;
    const Call marked(seat, "verify a live copy");
    const Outcome verified =
        attempt("Pool::verify", [&] { report = Pool::verify(copy, options_for_all_engines()); });
    if (verified.threw || !report.ok()) return;
    if (open().threw) return;
  }
  for (auto& [index, states] : before) {
    const Call marked(seat, "use a live copy");
    attempt("a call on a copy", [&, index = index, &states = states] {
      const AnyIndex opened = index->plan.type->open(*pool, index->plan.name);
      if (refused)
        use_torn_copy(*index, opened, seat);
      else
        compare_copy(*index, opened, states, seat);
    });
  }
}

// --- Other indexes that come and go
// ---------------------------------------------------------------

bool listed(const Pool& pool, std::string_view name) {
  for (const IndexInfo& info : pool.indexes()) {
    if (info.name == name) return true;
  }
  return false;
}

/// Fills an index until it is big enough or the pool is full. Pairs that it then holds.
std::uint32_t fill_other(OpenIndex& other, std::uint32_t wanted, Board& board) {
  for (std::uint32_t i = 0; i < wanted; ++i) {
    const Call marked(board.seats[0], "put into another index");
    const Outcome outcome = attempt("put", [&] {
      other.index.put(other.key(i), other.plan.values({i, 1}));
    });
    if (!outcome.threw) continue;
    require(outcome.code == Errc::out_of_space && other.pool_plan.tight,
            "put into another index threw " + outcome.text);
    return i;
  }
  return wanted;
}

void compare_other(OpenIndex& other, std::uint32_t pairs, Board& board) {
  for (std::uint32_t i = 0; i < pairs; ++i) {
    const Call marked(board.seats[0], "get from another index");
    const auto value = other.index.get(other.key(i));
    require(value && other.plan.values.read(*value) == Tag{i, 1},
            fmt::format("another index ({} {}) has lost key {}", other.plan.type->engine,
                        other.plan.type->kinds(), i));
  }
  require(other.index.size() == pairs, "another index has a wrong size()");
}

void drop_listed(Pool& pool, const std::string& name, Board& board) {
  const Call marked(board.seats[0], "drop");
  const Outcome outcome = attempt("drop", [&] { pool.drop(name); });
  require(!outcome.threw,
          fmt::format("drop() threw {} ({})", to_string(outcome.code), outcome.text));
  require(!listed(pool, name), "a dropped index is still listed");
}

/// Either nothing has happened, or the index is gone, and what could not be freed is noted.
void drop_without_memory(Scene& scene, unsigned number, const std::string& name) {
  Pool& pool = *scene.pools[number];
  const Call marked(scene.board.seats[0], "drop, without memory");
  Outcome outcome;
  {
    const faults::Armed armed(Fault::memory, static_cast<unsigned>(scene.rng.between(1, 40)),
                              scene.rng.once_in(2));
    outcome = attempt("drop", [&] { pool.drop(name); });
    outcome.struck = armed.struck();
  }
  if (outcome.struck) ++scene.board.counters.injected;
  require(!outcome.threw || outcome.struck, "drop() threw " + outcome.text);
  require(outcome.threw == listed(pool, name),
          "a drop() that had no memory and the list of indexes do not agree");
  note_unfinished_drops(pool, number, outcome.struck, scene.board);
}

void recreate_once(Scene& scene) {
  const auto number = static_cast<unsigned>(scene.rng.below(scene.pools.size()));
  Pool& pool = *scene.pools[number];
  const std::span<const IndexType> types = index_types();
  IndexPlan plan;
  plan.type = &types[scene.rng.below(types.size())];
  plan.name = other_name(std::to_string(scene.rng.below(1000)));
  plan.pool = number;
  plan.keys = {plan.type->key_kind, Shape::random, 8, scene.rng()};
  plan.values = {plan.type->value_kind, scene.rng.once_in(4) ? Sizes::large : Sizes::small};
  IndexModel none;
  std::unique_ptr<OpenIndex> other;
  const Outcome opened = attempt("an index's constructor", [&] {
    const Call marked(scene.board.seats[0], "create another index");
    IndexOptions options;
    detail::index::set_if_there(options, plan.type->engine, "dram_budget",
                                scene.rng.once_in(2) ? kUnlimited : 0);
    detail::index::set_if_there(options, plan.type->engine, "technique",
                                scene.rng.once_in(2) ? Technique::b : Technique::boc);
    other.reset(new OpenIndex{plan, scene.episode.pools[number], none, pool,
                              plan.type->open_with(pool, plan.name, options)});
  });
  if (opened.threw) {
    require(opened.code == Errc::out_of_space && scene.episode.pools[number].tight,
            "an index's constructor threw " + opened.text);
    require(!listed(pool, plan.name), "a constructor threw, and left its index in the directory");
    return;
  }
  const auto wanted = static_cast<std::uint32_t>(scene.rng.between(0, 1500));
  const std::uint32_t pairs = fill_other(*other, wanted, scene.board);
  compare_other(*other, pairs, scene.board);
  other.reset();
  if (scene.rng.once_in(3)) drop_without_memory(scene, number, plan.name);
  if (listed(pool, plan.name)) drop_listed(pool, plan.name, scene.board);
  ++scene.board.counters.recreated;
}

// --- Suspension and neighbours
// --------------------------------------------------------------------

std::atomic<bool> suspended{false};  // global, since a signal's handler has nothing else

void suspend_here(int) {
  for (int i = 0; suspended.load() && i < 10'000; ++i) {
    const timespec millisecond = {0, 1'000'000};
    ::nanosleep(&millisecond, nullptr);
  }
}

/// Calls of threads that go on while others are suspended.
class GoingOn {
 public:
  explicit GoingOn(Board& board) : board_(board) {}

  /// A thread that is in a call now.
  void add(std::size_t seat) {
    if (board_.seats[seat].since != 0) calls_.emplace_back(seat, board_.seats[seat].calls);
  }

  bool all_returned() const {
    return std::all_of(calls_.begin(), calls_.end(), [&](const auto& call) {
      return board_.seats[call.first].calls != call.second || board_.seats[call.first].since == 0;
    });
  }

 private:
  Board& board_;
  std::vector<std::pair<std::size_t, std::uint64_t>> calls_;
};

/// Whether no thread of these indexes waits for another, but where memory or space is handed out,
/// or a sync is on its way.
bool is_non_blocking(const Scene& scene) {
  return !scene.board.faults_on &&
         std::all_of(scene.indexes.begin(), scene.indexes.end(), [](const auto& index) {
           return index->plan.type->engine == "nbtree" &&
                  index->pool_plan.domain != Domain::page_cache;
         });
}

/// Suspended threads may hold a lock of malloc's or of the heap's now and then, but not often.
void expect_progress(Scene& scene, const GoingOn& others) {
  constexpr unsigned kEnough = 6;
  Board& board = scene.board;
  for (const std::uint64_t begin = now(); !others.all_returned();) {
    if (std::chrono::nanoseconds(now() - begin) > seconds(3)) {
      ++board.suspensions_noticed;
      break;
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  ++board.suspensions;
  const unsigned noticed = board.suspensions_noticed;
  require(noticed < kEnough || 2 * noticed < board.suspensions,
          fmt::format("of {} suspensions of some threads {} have stopped others, too",
                      board.suspensions.load(), noticed));
}

void suspend_once(Scene& scene) {
  if (scene.threads.empty()) return;
  suspended = true;
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < scene.threads.size(); ++i) {
    if (scene.rng.once_in(2))
      ::pthread_kill(scene.threads[i], SIGUSR1);
    else
      others.push_back(i + 1);  // the seat of the i-th client
  }
  std::this_thread::sleep_for(milliseconds(scene.rng.between(1, 60)));
  if (is_non_blocking(scene)) {
    GoingOn going_on(scene.board);
    for (const std::size_t seat : others) going_on.add(seat);
    expect_progress(scene, going_on);
  }
  suspended = false;
  ++scene.board.counters.stops;
}

/// Starts this program anew in another role. It ends with this process, and shares nothing with it.
pid_t start_role(Scene& scene, std::vector<std::string> arguments) {
  const std::lock_guard lock(scene.starting);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = -1;
  const int error = ::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, argv.data(), environ);
  require(error == 0, "the storm can't start a process");
  return child;
}

void stop_once(Scene& scene) {
  const std::string pause = std::to_string(scene.rng.between(1, 150));
  const pid_t child =
      start_role(scene, {"perdix_storm", "--parent", std::to_string(::getpid()), "--stop", pause});
  require(await_child(child).has_value(), "the storm's own helper hangs");
  ++scene.board.counters.stops;
}

/// Processes that only compute, until it goes.
class Burners {
 public:
  Burners(Scene& scene, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      children_.push_back(start_role(
          scene, {"perdix_storm", "--parent", std::to_string(::getpid()), "--burn", "1"}));
  }
  ~Burners() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
  Burners(const Burners&) = delete;
  Burners& operator=(const Burners&) = delete;

 private:
  std::vector<pid_t> children_;
};

// --- Calls that must be refused
// -------------------------------------------------------------------

void expect_code(const char* what, Errc code, const std::function<void()>& call) {
  const Outcome outcome = attempt(what, call);
  require(outcome.threw && outcome.code == code,
          fmt::format("{} should throw {}, but {} ({})", what, to_string(code),
                      outcome.threw ? to_string(outcome.code) : "succeeds", outcome.text));
}

void misuse_once(Scene& scene) {
  OpenIndex& index = any_index(scene);
  const std::string small = scene.paths.front() + ".small";
  Seat& seat = scene.board.seats[0];
  const Call marked(seat, "a call that must be refused");
  switch (scene.rng.below(6)) {
    case 0: return expect_owned(scene, "while the pool is in use");
    case 1:
      return expect_code("drop() of an open index", Errc::in_use,
                         [&] { index.pool.drop(index.plan.name); });
    case 2:
      return expect_code("opening an open index", Errc::in_use,
                         [&] { index.plan.type->open(index.pool, index.plan.name); });
    case 3:
      return expect_code("drop() of no index", Errc::not_found,
                         [&] { index.pool.drop("no-such-index"); });
    case 4:
      if (index.plan.keys.kind == Kind::u64) return;
      return expect_code("put() of too long a key", Errc::too_large, [&] {
        index.index.put(std::string(kMaxKeySize + 1, 'k'), index.plan.values({0, 1}));
      });
    default: break;
  }
  if (!scene.episode.closed_pool) return;
  fs::remove(small);
  Pool pool = Pool::create(small);
  pool.close();
  expect_code("check() of a closed pool", Errc::invalid_argument, [&] { pool.check(); });
  expect_code("drop() in a closed pool", Errc::invalid_argument, [&] { pool.drop("index"); });
}

/// How often in a step, since some cost much time.
unsigned most_of(Disturbance disturbance) {
  switch (disturbance) {
    case Disturbance::forks: return 12;
    case Disturbance::copies: return 3;
    case Disturbance::stop: return 4;
    case Disturbance::misuse: return 30;
    default: return 10;
  }
}

}  // namespace

void disturb(Disturbance disturbance, Scene& scene, const std::function<bool()>& more) {
  if (disturbance == Disturbance::none) return;
  // Their calls must succeed, which they may not while calls to the system fail, or in a pool that
  // is only read.
  const bool exact = disturbance == Disturbance::recreate || disturbance == Disturbance::misuse;
  if (exact && (scene.board.faults_on || any(scene.board.descriptor_lost))) return;
  std::optional<Burners> burners;
  if (disturbance == Disturbance::burn) burners.emplace(scene, 3);
  for (unsigned left = most_of(disturbance); left > 0 && more(); --left) {
    switch (disturbance) {
      case Disturbance::forks: fork_once(scene); break;
      case Disturbance::copies: copy_once(scene); break;
      case Disturbance::recreate: recreate_once(scene); break;
      case Disturbance::suspend: suspend_once(scene); break;
      case Disturbance::stop: stop_once(scene); break;
      case Disturbance::misuse: misuse_once(scene); break;
      case Disturbance::descriptors: lose_descriptor(scene); break;
      default: break;
    }
    pause_between(scene);
  }
  while (burners && more()) pause_between(scene);
}

void leave_orphan(Scene& scene) {
  const pid_t child = fork_and_wait(scene);
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, 0);
    std::this_thread::sleep_for(kOrphanLife);
    ::_exit(0);
  }
  scene.board.orphan = child;
}

void become_daemon(Scene& scene) {
  const pid_t parent = ::getpid();
  const pid_t child = fork_and_wait(scene);
  if (child != 0) return;
  ::prctl(PR_SET_PDEATHSIG, 0);
  ::setsid();
  while (::getppid() == parent) std::this_thread::sleep_for(milliseconds(1));
  OpenIndex& index = any_index(scene);
  try {
    for (unsigned i = 0; i < 20; ++i) {
      expect_code("get() in a daemon whose parent opened the pool", Errc::forked,
                  [&] { index.index.get(index.key(0)); });
      expect_code("put() in a daemon whose parent opened the pool", Errc::forked, [&] {
        index.index.put(index.key(0), index.plan.values({0, kForgedVersion}));
      });
      std::this_thread::sleep_for(milliseconds(20));
    }
  } catch (const std::exception& finding) {
    report_problem(scene.board, finding.what());
  }
  ::_exit(0);
}

bool run_helper(const Options& options) {
  const std::uint64_t pause = options.number("stop", 0);
  if (pause == 0 && options.number("burn", 0) == 0) return false;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto parent = static_cast<pid_t>(options.number("parent", 0));
  if (::getppid() != parent) return true;  // it is dead already
  if (pause != 0) {
    ::kill(parent, SIGSTOP);
    std::this_thread::sleep_for(milliseconds(pause));
    ::kill(parent, SIGCONT);
    return true;
  }
  for (volatile unsigned spins = 0; ::getppid() == parent;) spins = spins + 1;
  return true;
}

void allow_suspension() {
  struct sigaction action {};
  action.sa_handler = suspend_here;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &action, nullptr);
}

std::string other_name(std::string_view what) { return fmt::format("{}-{}", kOtherName, what); }

void drop_others(Pool& pool) {
  for (const IndexInfo& info : pool.indexes()) {
    if (info.name.starts_with(kOtherName)) pool.drop(info.name);
  }
}

}  // namespace perdix::test::storm
