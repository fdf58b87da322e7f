#include "testing/linearizability/schedule_fuzzer.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "pm/probe.h"
#include "testing/linearizability/checker.h"
#include "testing/linearizability/recorder.h"
#include "testing/linearizability/retired_blocks.h"
#include "testing/linearizability/schedule_plan.h"
#include "testing/linearizability/scheduler.h"
#include "testing/linearizability/surviving_memory.h"
#include "testing/yield.h"

namespace perdix::testing {
namespace {

constexpr unsigned kSecondTime = 10;  // added to numbers of threads that go on after a crash
constexpr unsigned kBefore = 97;      // numbers of the thread that prepares and looks at the end
constexpr unsigned kAfterCrash = 98;
constexpr unsigned kAfter = 99;
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
/// With a suppression the crash comes when one of the next 64 calls returns, rather an early one.
constexpr unsigned kMaxReturnsLog2 = 6;
/// Like kMaxReturnsLog2 where all threads but one stay, after fewer points than kMaxPoints.
constexpr unsigned kFewReturnsLog2 = 2;
constexpr std::uint64_t kMaxPoints = 8;
/// The most points of the other threads for which a thread stays at a step.
constexpr std::uint64_t kMaxStayLog2 = 10;

/// Counts how often each named step was taken, and chooses where a thread stays while the others do
/// a lot: in half of the runs nowhere; else after some of the steps, of all names or, for longer,
/// of a few that the run has drawn, rather where a step is the first of its name, and before some
/// flushes and fences. Thread-safe.
class Stays {
 public:
  explicit Stays(std::uint64_t seed)
      : random_(seed),
        any_(random_.one_in(2)),
        few_(random_.one_in(2)),
        salt_(random_()),
        step_one_in_(std::uint64_t{1} << random_.below(few_ ? 3 : 6)),
        flush_one_in_(std::uint64_t{4} << random_.below(4)) {}

  /// For how many points of the others.
  std::uint64_t after_step(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const bool first = ++counts_[std::string(name)] == 1;
    if (first) return draw(kFirstInterval);
    if (in_doubt(name)) return draw(std::min(step_one_in_, kInDoubtInterval));
    return !few_ || is_chosen(name) ? draw(step_one_in_) : 0;
  }
  std::uint64_t before_flush() {
    const std::lock_guard lock(mutex_);
    return draw(flush_one_in_);
  }
  /// From now on all go on.
  void end() {
    const std::lock_guard lock(mutex_);
    any_ = false;
  }
  Steps take() { return std::move(counts_); }

  /// Steps after which other threads see effects that a crash may undo.
  static bool in_doubt(std::string_view name) { return name.ends_with("may not be durable"); }

 private:
  static constexpr std::uint64_t kFirstInterval = 2;
  static constexpr std::uint64_t kInDoubtInterval = 4;
  static constexpr std::uint64_t kNamesInterval = 8;

  std::uint64_t draw(std::uint64_t one_in) {
    if (!any_ || !random_.one_in(one_in)) return 0;
    const std::uint64_t log = few_ ? kMaxStayLog2 : random_.below(kMaxStayLog2 + 1);
    return random_.below(std::uint64_t{1} << log);
  }
  bool is_chosen(std::string_view name) const {
    return detail::util::Random(std::hash<std::string_view>()(name) ^ salt_).one_in(kNamesInterval);
  }

  std::mutex mutex_;
  detail::util::Random random_;
  bool any_;
  bool few_;
  std::uint64_t salt_;
  std::uint64_t step_one_in_;
  std::uint64_t flush_one_in_;
  Steps counts_;
};

/// Installed for the whole of a run. Without a thread in the background the seed decides
/// everything. Small limits let few keys have what many have: nodes above nodes, or a log with
/// checkpoints.
class RunProbe : public YieldingProbe {
 public:
  explicit RunProbe(std::uint64_t seed) : seed_(seed), random_(seed) {
    small_ = random_.one_in(2);
    children_ = 2 + random_.below(3);
  }
  bool allows_background_reclamation() override { return seed_ % 2 == 0; }
  std::uint64_t on_limit(const char* name, std::uint64_t limit) override {
    static const std::map<std::string_view, std::uint64_t> kSmall = {
        {"wal: bytes of records", 4096},
        {"wal: bytes that a restart reads", 512},
        {"wal: records of a generation", 8},
        {"wal: records per look", 4},
        {"tips: lines of a new ring", 32}};
    // Of a machine's memory otherwise: the copies of a pool that grows meanwhile are cut off.
    constexpr std::uint64_t kRing = 4096;
    if (!small_) return name == std::string_view("tips: lines of a new ring") ? kRing : limit;
    const auto found = kSmall.find(name);
    return std::min(limit, found == kSmall.end() ? children_ : found->second);
  }
  void on_yield() override { give_up_processor(); }
  void on_read(const void*, std::size_t) override {}
  void on_write(const void*, std::size_t) override {}
  /// Nothing is really flushed, and no pool writes its journal: what survives is worked out.
  bool on_flush(const void*, std::size_t, const detail::pm::Site&) override { return false; }
  bool on_fence(const detail::pm::Site&) override { return false; }
  bool on_commit(std::span<const detail::pm::Change>, const detail::pm::Site&) override {
    return false;
  }
  bool on_publish_for_next(std::uint64_t&, std::uint64_t, const detail::pm::Site&) override {
    return false;
  }

 private:
  std::uint64_t seed_;
  detail::util::Random random_;
  bool small_ = false;
  std::uint64_t children_ = 0;
};

/// Every event of the probe is a scheduling point, and is told to what survives. A store has
/// happened when its event comes, so it counts before the thread waits for its turn; a flush or a
/// fence acts afterwards. The point before a store lies behind the load that it depends on, so a
/// compare-and-swap may find that another thread was faster.
class PointProbe final : public RunProbe {
 public:
  /// `missed` is called when the suppressed call was left out. `stays(points)` is called when a
  /// thread is about to stay for `points` points; it returns for how many points it stays.
  PointProbe(const RunProbe& run, Scheduler& scheduler, SurvivingMemory& memory, CallSites& sites,
             Stays& where, std::function<void()> missed,
             std::function<std::uint64_t(std::uint64_t, bool)> stays,
             std::function<void(std::string)> report)
      : RunProbe(run),
        scheduler_(scheduler),
        memory_(memory),
        sites_(sites),
        where_(where),
        missed_(std::move(missed)),
        stays_(std::move(stays)),
        report_(std::move(report)) {}

  void on_yield() override { scheduler_.yield(); }
  void before_write(const void*, std::size_t) override { scheduler_.point(); }
  void on_step(const char* name) override { point(where_.after_step(name), Stays::in_doubt(name)); }
  void on_read(const void* p, std::size_t n) override {
    memory_.read(p, n);
    scheduler_.point();
    if (retired_.may_read(p, n) || reported_.exchange(true)) return;
    report_("a call reads a block that had been freed when it began");
  }
  void on_section() noexcept override { retired_.begin_section(); }
  void on_retired(const void* p, std::size_t n) override { retired_.retired(p, n); }
  void on_reclaimed(const void* p) override { retired_.reclaimed(p); }
  void on_write(const void* p, std::size_t n) override {
    memory_.wrote(p, n);
    scheduler_.point();
  }
  bool on_flush(const void* p, std::size_t n, const detail::pm::Site& site) override {
    point(where_.before_flush(), true);
    if (sites_.counts(site, Event::Kind::flush)) {
      memory_.flushed(p, n);
    } else {
      memory_.missed_flush(p, n);
      missed_();
    }
    return false;
  }
  bool on_fence(const detail::pm::Site& site) override {
    point(where_.before_flush(), true);
    if (sites_.counts(site, Event::Kind::fence)) {
      memory_.fenced();
    } else {
      memory_.missed_fence();
      missed_();
    }
    return false;
  }
  /// A crash may come when the changes are durable and others have not seen them, or some only.
  bool on_commit(std::span<const detail::pm::Change> changes,
                 const detail::pm::Site& site) override {
    on_fence(site);
    const bool counts = sites_.counts(site, Event::Kind::flush);
    if (counts) memory_.committed(changes);
    for (const detail::pm::Change& change : changes) {
      point(where_.before_flush(), true);
      detail::pm::make(change);
      if (counts) {
        memory_.made(change);
      } else {
        memory_.wrote(change.word, sizeof *change.word);
        memory_.missed_flush(change.word, sizeof *change.word);
      }
    }
    if (!counts) missed_();
    return false;
  }
  bool on_publish_for_next(std::uint64_t& word, std::uint64_t value,
                           const detail::pm::Site& site) override {
    scheduler_.point();
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
    memory_.wrote(&word, sizeof word);
    if (sites_.counts(site, Event::Kind::flush)) {
      memory_.flushed_for_all(&word, sizeof word);
    } else {
      memory_.missed_flush(&word, sizeof word);
      missed_();
    }
    scheduler_.point();
    return false;
  }

 private:
  void point(std::uint64_t stay, bool in_doubt) {
    if (stay == 0) return scheduler_.point();
    scheduler_.stay(stays_(stay, in_doubt));
  }

  Scheduler& scheduler_;
  SurvivingMemory& memory_;
  CallSites& sites_;
  Stays& where_;
  std::function<void()> missed_;
  std::function<std::uint64_t(std::uint64_t, bool)> stays_;
  std::function<void(std::string)> report_;
  RetiredBlocks retired_;
  std::atomic<bool> reported_{false};
};

class InstalledProbe {
 public:
  explicit InstalledProbe(detail::pm::Probe& probe) : before_(detail::pm::install_probe(&probe)) {}
  ~InstalledProbe() { detail::pm::install_probe(before_); }
  InstalledProbe(const InstalledProbe&) = delete;
  InstalledProbe& operator=(const InstalledProbe&) = delete;

 private:
  detail::pm::Probe* before_;
};

struct Crash {
  Tick at = 0;
  SparseBytes image;
};

class Run {
 public:
  Run(const MakeSystem& make, std::uint64_t seed, CallSites& sites)
      : seed_(seed),
        random_(seed),
        sites_(sites),
        quiet_(seed),
        installed_(quiet_),
        system_(make()),
        plan_(draw_plan(random_, system_->map().ordered(), system_->leaf_sizes(),
                        system_->beginning())) {}

  ScheduleOutcome run() {
    Log log(system_->map(), clock_, kBefore);
    for (const PlannedCall& call : plan_.before) call(log);
    log.move_to(history_);
    system_->prepared(seed_);
    execute(*system_, plan_.threads, 0);
    outcome_.crashed = crash_.has_value();
    if (outcome_.problems.empty() && !sites_.suppresses()) check_end(*system_);
    if (outcome_.problems.empty() && crash_) {
      sites_.suppresses() || plan_.again.empty() ? check_crash() : go_on();
    }
    outcome_.operations = history_.operations.size() + history_.scans.size();
    return std::move(outcome_);
  }

 private:
  /// Threads with numbers from `first` on do these calls.
  void execute(System& system, const std::vector<PlannedCalls>& calls, unsigned first) {
    const std::uint64_t expected = system.points_per_call() * calls.size() * calls[0].size();
    Scheduler scheduler(static_cast<unsigned>(calls.size()), random_(), expected);
    SurvivingMemory memory(system.memory(), system.needs_flushes());
    crash_random_ = detail::util::Random(random_());
    crash_is_near_ = false;
    doubts_one_in_ = std::uint64_t{1} << crash_random_.below(4);
    await_doubts_ = random_.one_in(2) && system.needs_flushes() && !sites_.suppresses();
    if (!sites_.suppresses()) {
      const std::uint64_t early = await_doubts_ ? expected / 2 : 0;
      scheduler.at_point(1 + early + random_.below(expected - early), [&] { crash(memory); });
    }
    returns_left_ = 0;
    Stays where(random_());
    PointProbe probe(
        quiet_, scheduler, memory, sites_, where, [&] { missed(scheduler); },
        [&](std::uint64_t points, bool in_doubt) {
          return stays(scheduler, memory, where, points, in_doubt);
        },
        [&](std::string problem) { report(std::move(problem)); });
    const InstalledProbe installed(probe);
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < calls.size(); ++t) {
      threads.emplace_back(
          [&, t] { work(scheduler, memory, Log(system.map(), clock_, first + t), calls[t], t); });
    }
    scheduler.watch();
    threads.clear();  // joins
    outcome_.points += scheduler.points();
    for (const auto& [name, count] : where.take()) outcome_.steps[name] += count;
  }

  void crash(const SurvivingMemory& memory, const std::vector<std::size_t>& lost = {}) {
    if (crash_) return;
    const Tick now = clock_.tick();  // before the image, in which all is that returned before
    crash_ = {now, memory.image(crash_random_, lost)};
  }

  /// A thread is about to stay where it is for `points` points. The crash often comes during these,
  /// at any point or when a call of another thread returns, since that call may have relied on what
  /// is not durable. Returns for how many points the thread stays.
  std::uint64_t stays(Scheduler& scheduler, const SurvivingMemory& memory, Stays& where,
                      std::uint64_t points, bool in_doubt) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t one_in = in_doubt ? 4 : 32;
    const bool none = crash_ || crash_is_near_ || await_doubts_ || sites_.suppresses();
    if (none || !crash_random_.one_in(one_in)) return points;
    crash_is_near_ = true;
    if (crash_random_.one_in(2)) where.end();
    const bool at_return = crash_random_.one_in(2);
    if (at_return) {
      returns_left_ = 1 + crash_random_.below(std::uint64_t{1} << kFewReturnsLog2);
      points = std::uint64_t{1} << kMaxStayLog2;
    }
    const std::uint64_t after = at_return ? points : 1 + crash_random_.below(points);
    scheduler.at_point(scheduler.points() + after, [&] { crash(memory); });
    return points;
  }

  /// The suppressed call was left out. In half of the schedules its thread goes on a little and
  /// then stays there until an early crash: one of its next calls may compensate for the suppressed
  /// one.
  void missed(Scheduler& scheduler) {
    const std::lock_guard lock(mutex_);
    if (crash_ || returns_left_ != 0) return;
    const bool stays = crash_random_.one_in(2);
    if (stays) scheduler.pass_for_good_after(crash_random_.below(kMaxPoints));
    const std::uint64_t log = crash_random_.below((stays ? kFewReturnsLog2 : kMaxReturnsLog2) + 1);
    const std::uint64_t most = std::uint64_t{1} << log;
    returns_left_ = 1 + crash_random_.below(most);
  }

  /// A call has returned, and the others are stopped. In half of the runs the crash comes when the
  /// thread has read data that is not durable, and undoes that data.
  void returned(const SurvivingMemory& memory) {
    const std::lock_guard lock(mutex_);
    if (await_doubts_ && !crash_) {
      const std::vector<std::size_t> lost = memory.read_in_doubt();
      if (!lost.empty() && crash_random_.one_in(doubts_one_in_)) crash(memory, lost);
      return;
    }
    if (returns_left_ == 0 || --returns_left_ != 0) return;
    if (!sites_.suppresses() || memory.misses()) crash(memory);
  }

  void work(Scheduler& scheduler, SurvivingMemory& memory, Log log, const PlannedCalls& calls,
            unsigned number) {
    const Scheduler::Member member(scheduler, number);
    try {
      for (const PlannedCall& call : calls) {
        scheduler.point_between();
        memory.begin_operation();
        call(log);
        // Else others would store while the image of a crash is made, and begin calls after it that
        // the image shows.
        scheduler.await_turn();
        returned(memory);
      }
    } catch (const std::exception& error) {
      report(fmt::format("thread {}: an unexpected exception: {}", number, error.what()));
    }
    const std::lock_guard lock(mutex_);
    log.move_to(history_);
  }

  void report(std::string problem) {
    const std::lock_guard lock(mutex_);
    outcome_.problems.push_back(std::move(problem));
  }

  void report_all(std::vector<std::string> problems, const std::string& when) {
    for (std::string& problem : problems) report(when + ": " + std::move(problem));
  }

  /// Reads everything, in both ways.
  void look(Log& log) const {
    for (const Key key : plan_.keys) log.get(key);
    log.scan(0, kAll);
  }

  void check_end(System& system, const std::string& when = "without a crash") {
    History history = history_;
    Log log(system.map(), clock_, kAfter);
    look(log);
    log.move_to(history);
    report_all(check(history, plan_.keys), when);
    report_all(system.problems(), when + ", its own check");
  }

  /// Threads find what the crash has left, before it was inspected.
  void go_on() {
    const std::string when = fmt::format("threads after a crash at {}", crash_->at);
    try {
      history_ = cut(history_, crash_->at);
      system_ = system_->recover(crash_->image);
      crash_.reset();
      outcome_.again = true;
      execute(*system_, plan_.again, kSecondTime);
      if (outcome_.problems.empty()) check_end(*system_, when);
      if (outcome_.problems.empty() && crash_) check_crash();
    } catch (const std::exception& error) {
      report(fmt::format("{}: an unexpected exception: {}", when, error.what()));
    }
  }

  void check_crash() {
    const std::string when = fmt::format("with a crash at {}", crash_->at);
    try {
      History history = cut(history_, crash_->at);
      system_ = system_->recover(crash_->image);
      report_all(system_->problems(), when + ", its own check");
      Log log(system_->map(), clock_, kAfterCrash);
      look(log);
      Value value = Value{1} << 32;  // it must work on
      for (const Key key : plan_.keys) key % 3 == 0 ? log.erase(key) : log.put(key, ++value);
      look(log);
      log.move_to(history);
      report_all(check(history, plan_.keys), when);
      report_all(system_->problems(), when + " and more operations, its own check");
    } catch (const std::exception& error) {
      report(fmt::format("{}: an unexpected exception: {}", when, error.what()));
    }
  }

  std::uint64_t seed_;
  detail::util::Random random_;
  CallSites& sites_;
  RunProbe quiet_;
  InstalledProbe installed_;
  std::unique_ptr<System> system_;
  SchedulePlan plan_;
  Clock clock_;
  std::mutex mutex_;  // guards what follows while threads run
  History history_;
  ScheduleOutcome outcome_;
  detail::util::Random crash_random_{0};
  std::uint64_t returns_left_ = 0;   // until the crash that follows a suppressed call
  bool crash_is_near_ = false;       // since a thread stays where it is
  bool await_doubts_ = false;        // the crash comes when a call has read what is not durable:
  std::uint64_t doubts_one_in_ = 1;  // at one in this many such calls
  std::optional<Crash> crash_;
};

}  // namespace

ScheduleOutcome run_schedule(const MakeSystem& make, std::uint64_t seed, CallSites& sites) {
  return Run(make, seed, sites).run();
}

ScheduleOutcome run_schedule(const MakeSystem& make, std::uint64_t seed) {
  CallSites sites;
  return run_schedule(make, seed, sites);
}

}  // namespace perdix::testing
