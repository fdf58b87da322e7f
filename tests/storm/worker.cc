#include "storm/worker.h"

#include <execinfo.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include <perdix/perdix.h>

#include "storm/bounds.h"
#include "storm/client.h"
#include "storm/crash_report.h"
#include "storm/descriptors.h"
#include "storm/device.h"
#include "storm/disturb.h"
#include "storm/faults.h"
#include "storm/finale.h"
#include "storm/verify.h"

namespace perdix::test::storm {
namespace {

using std::chrono::microseconds;

/// Compared behind each step; larger ones behind the last step of a round.
constexpr std::uint32_t kComparedOften = 60'000;
constexpr unsigned kChunks = 6;  // threads that follow each other where they come and go

[[noreturn]] void end_with(Board& board, const std::string& problem) {
  report_problem(board, problem);
  ::_exit(1);
}

std::string what_of(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception))
    return fmt::format("an unexpected Error ({}): {}", to_string(error->code()), error->what());
  return exception.what();
}

[[noreturn]] void die(Board& board, std::mutex& starting, int signal) {
  const std::lock_guard lock(starting);
  board.planned_signal = signal;
  ::kill(::getpid(), signal);
  for (;;) ::pause();
}

class Worker {
 public:
  Worker(const Episode& episode, Ground& ground, const std::vector<std::string>& paths)
      : episode_(episode), ground_(ground), board_(ground.board()), paths_(paths) {}

  void run() {
    for (const std::string& path : paths_) descriptors::give_back(path);
    if (board_.power_lost.exchange(false)) {
      Rng rng(mix(episode_.seed - board_.round));
      for (const std::string& path : paths_) device::lose_power(path, rng);
      ++board_.counters.power_losses;
    }
    if (board_.damage_wanted.exchange(false)) {
      Rng rng(mix(episode_.seed + board_.round));
      return open_damaged(paths_.front(), episode_, board_, rng);
    }
    while (board_.round < episode_.rounds.size()) {
      if (!run_round(episode_.rounds[board_.round])) return;
    }
    open_all(episode_.rounds.back());
    run_finale(indexes_, pools_, paths_, episode_, board_);
    board_.finished = true;
  }

 private:
  /// Whether this process goes on.
  bool run_round(const Round& round) {
    rng_ = Rng(mix(episode_.seed) + board_.round * 1000 + board_.openings_killed);
    const bool deadly = board_.openings_killed < round.kills_while_opening;
    if (deadly) {
      ++board_.openings_killed;
      kill_soon();
    }
    open_all(round);
    if (!sick()) {
      look_for_space("that indexes left which were emptied before it was opened");
      for (auto& index : indexes_) settle_hot(*index, seat());
      if (round.look_first) compare(true);
    }
    while (deadly) ::pause();
    board_.opened = true;
    for (std::size_t i = 0; i < round.steps.size() && !sick(); ++i) {
      const bool last = i + 1 == round.steps.size();
      run_step(round.steps[i], last && round.ending >= Ending::kill ? &round : nullptr);
      if (sick()) break;
      compare(last);
      // After the last step the next opening does it, which has seen none of the blocks freed.
      if (!last && round.steps[i].work == Work::drain && round.steps[i].fault == Fault::none)
        look_for_space("that indexes left which were emptied");
    }
    close_all(round);
    board_.openings_killed = 0;
    board_.opened = false;
    ++board_.round;
    board_.damage_wanted = round.damage && round.ending == Ending::close;
    return !board_.damage_wanted && !rng_.once_in(3);
  }

  Seat& seat() { return board_.seats[0]; }

  bool sick() const { return any(board_.sick); }

  void kill_soon() {
    const auto delay = microseconds(rng_.below(rng_.once_in(3) ? 60'000 : 4'000));
    std::thread([this, delay] {
      faults::exempt_this_thread();
      std::this_thread::sleep_for(delay);
      ++board_.counters.kills;
      ++board_.counters.kills_in_open;
      die(board_, starting_, SIGKILL);
    }).detach();
  }

  // --- Opening and closing ---

  PoolOptions options_of(unsigned pool, const Round& round) const {
    PoolOptions options = options_for(episode_.pools[pool].domain);
    options.max_size = episode_.pools[pool].max_size;
    if (round.default_options) options.max_size = PoolOptions{}.max_size;
    return options;
  }

  void open_all(const Round& round) {
    open_under(round, round.opening_fault);
    if (sick()) {
      // A pool whose sync failed serves nothing until it is opened again.
      indexes_.clear();
      pools_.clear();
      open_under(round, Fault::none);
    }
    ++board_.counters.reopens;
  }

  void open_under(const Round& round, Fault fault) {
    pools_.resize(paths_.size());
    for (auto& sick : board_.sick) sick = false;
    for (auto& lost : board_.descriptor_lost) lost = false;
    for (auto& unfinished : board_.drop_unfinished) unfinished = false;
    for (unsigned i = 0; i < paths_.size(); ++i) {
      with_fault(fault, i, "opening a pool", [&] { open_pool(i, round); });
      if (sick()) return;
      // The pool that a crash has left must be sound before the work continues.
      if (fault == Fault::none && rng_.once_in(3)) check_pool(*pools_[i], i, board_);
      drop_others(*pools_[i]);
    }
    for (std::size_t i = 0; i < episode_.indexes.size() && !sick(); ++i) {
      const IndexPlan& plan = episode_.indexes[i];
      with_fault(fault, plan.pool, "opening an index", [&] { open_index(plan, i, round); });
    }
  }

  // What is the storm's own does not fail here.
  void open_pool(unsigned number, const Round& round) {
    const Call marked(seat(), "opening a pool");
    std::optional<std::filesystem::path> path;
    bool exists = false;
    {
      const faults::Spared spared;
      path = paths_[number];
      exists = std::filesystem::exists(*path);
    }
    const PoolOptions options = options_of(number, round);
    const bool on_device = episode_.pools[number].domain == Domain::page_cache;
    if (exists && on_device) attach(number);
    pools_[number].emplace(exists ? Pool::open(*path, options) : Pool::create(*path, options));
    if (exists) return;
    const faults::Spared spared;
    if (on_device) attach(number);
    keep_head(*path);
  }

  /// What was written before is taken to be on the device: the kernel may write it at any time.
  void attach(unsigned number) {
    const faults::Spared spared;
    device::attach(paths_[number]);
  }

  void open_index(const IndexPlan& plan, std::size_t number, const Round& round) {
    const Call marked(seat(), "opening an index");
    Pool& pool = *pools_[plan.pool];
    AnyIndex index = plan.type->open_with(pool, plan.name, round.options[number]);
    const faults::Spared spared;
    indexes_.emplace_back(new OpenIndex{plan, episode_.pools[plan.pool], ground_.model(number),
                                        pool, std::move(index)});
  }

  /// With failures first, where Errors are right; then without, where none is. Behind a failed
  /// sync the pool counts as sick, and there is no second time.
  void with_fault(Fault fault, unsigned pool, const char* what, const std::function<void()>& call) {
    if (fault != Fault::none && succeeds_under(fault, pool, what, call)) return;
    if (board_.sick[pool]) return;
    const Outcome outcome = attempt(what, call);
    require(!outcome.threw,
            fmt::format("{} threw {} ({})", what, to_string(outcome.code), outcome.text));
    note_unfinished_drops(*pools_[pool], pool, false, board_);
  }

  bool succeeds_under(Fault fault, unsigned pool, const char* what,
                      const std::function<void()>& call) {
    const bool existed = std::filesystem::exists(paths_[pool]);
    Outcome outcome;
    {
      // The first allocation may be the storm's own; of other calls there are few.
      const bool memory = fault == Fault::memory;
      const auto nth = static_cast<unsigned>(rng_.between(memory ? 2 : 1, memory ? 60 : 6));
      const faults::Armed armed(fault, nth, fault != Fault::memory && rng_.once_in(2));
      outcome = attempt(what, call);
      outcome.struck = armed.struck();
    }
    if (outcome.struck) ++board_.counters.injected;
    if (outcome.struck && fault == Fault::sync) board_.sick[pool] = true;
    // An opening goes on with a drop, and removes an index that it can't create.
    if (pools_[pool].has_value() && !board_.sick[pool])
      note_unfinished_drops(*pools_[pool], pool, outcome.struck, board_);
    if (!outcome.threw) return true;
    ++board_.counters.failed_calls;
    require(outcome.struck, fmt::format("{} threw {}", what, outcome.text));
    require(existed || !std::filesystem::exists(paths_[pool]) || pools_[pool].has_value(),
            "Pool::create() threw and has left the file");
    return false;
  }

  void close_all(const Round& round) {
    const bool look = !sick() && rng_.once_in(2);
    for (unsigned i = 0; look && i < pools_.size(); ++i) check_file(*pools_[i], episode_, i);
    indexes_.clear();
    for (unsigned i = 0; i < pools_.size(); ++i) {
      if (!board_.sick[i]) check_pool(*pools_[i], i, board_);
      const Call marked(seat(), "closing a pool");
      if (round.ending == Ending::close) close_pool(i, round.closing_fault);
      pools_[i].reset();
      descriptors::give_back(paths_[i]);
    }
  }

  void close_pool(unsigned number, Fault fault) {
    if (fault != Fault::none) {
      const faults::Armed armed(fault, static_cast<unsigned>(rng_.between(1, 6)), rng_.once_in(2));
      const Outcome outcome = attempt("close()", [&] { pools_[number]->close(); });
      require(!outcome.threw || armed.struck() || may_not_close(number),
              "close() threw " + outcome.text);
      if (armed.struck()) ++board_.counters.injected;
      return;
    }
    const Outcome outcome = attempt("close()", [&] { pools_[number]->close(); });
    require(!outcome.threw || may_not_close(number), "close() threw " + outcome.text);
    require(outcome.threw || !board_.descriptor_lost[number],
            "close() of a pool whose descriptor is lost claims that it is clean");
    if (!outcome.threw && rng_.once_in(2)) keep_head(paths_[number]);
  }

  bool may_not_close(unsigned pool) const {
    return board_.sick[pool] || board_.descriptor_lost[pool];
  }

  /// Of indexes that were emptied, in a pool that others want, too: their space is to be had.
  void look_for_space(const char* whose) {
    if (!episode_.leftovers) return;
    for (const auto& index : indexes_) {
      const bool small =
          index->plan.values.kind == Kind::u64 || index->plan.values.sizes <= Sizes::mixed;
      if (!small || !is_empty(*index)) return;
    }
    for (unsigned i = 0; i < pools_.size(); ++i) {
      const bool usable = !board_.drop_unfinished[i] && !board_.descriptor_lost[i];
      if (episode_.pools[i].tight && usable) use_space(*pools_[i], episode_, i, whose, 2, seat());
    }
  }

  /// By the model, so that nothing of the index is looked at; the hot keys may be there. Visitors
  /// may have written while others drained.
  static bool is_empty(const OpenIndex& index) {
    for (std::uint32_t number = 0; number < index.plan.count; ++number) {
      const Snapshot key = index.model.cells[number].load();
      if (key.decided.present || key.in_flight) return false;
    }
    return true;
  }

  void compare(bool all) {
    for (auto& index : indexes_) {
      if (!all && index->plan.count > kComparedOften) continue;
      compare_all(*index, seat());
      const auto number = static_cast<std::size_t>(&index - indexes_.data());
      const Round& round =
          episode_.rounds[std::min<std::size_t>(board_.round, episode_.rounds.size() - 1)];
      if (all && episode_.bounds) check_bounds(*index, round.options[number], seat());
    }
    if (all && episode_.bounds) check_memory(indexes_);
    ++board_.counters.comparisons;
  }

  // --- Steps ---

  /// With `deadly`, the process is killed in this step as the round says.
  void run_step(const Step& step, const Round* deadly) {
    running_ = step.threads;
    board_.faults_on = step.fault != Fault::none;
    const std::uint64_t begin = board_.counters.operations;
    const Pace pace(episode_, step, board_.counters);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < step.threads; ++i)
      threads.emplace_back([this, &step, i] { run_client(step, i); });
    if (deadly != nullptr) {
      const std::uint64_t all = step.operations * step.threads;
      const std::uint64_t at = begin + all * deadly->kill_after / 1000;
      std::thread([this, deadly, at] { kill_at(*deadly, at); }).detach();
    }
    arm_library_threads(step);
    Scene scene{indexes_, pools_, paths_, episode_, board_, rng_, starting_, {}};
    if (!step.restarts) {
      for (std::thread& thread : threads) scene.threads.push_back(thread.native_handle());
    }
    guarded(step.fault,
            [&] { disturb(step.disturbance, scene, [&] { return running_.load() > 0; }); });
    for (std::thread& thread : threads) thread.join();
    faults::arm_others(Fault::none, 0);
    board_.others_armed = false;
    while (deadly != nullptr) ::pause();
    pace.check();
  }

  void arm_library_threads(const Step& step) {
    if (step.fault == Fault::none || !rng_.once_in(2)) return;
    board_.others_armed = true;
    faults::arm_others(step.fault,
                       static_cast<unsigned>(rng_.once_in(2) ? 1 : rng_.between(1, 30)));
  }

  void run_client(const Step& step, unsigned number) {
    const Share share = {number, step.threads};
    const std::uint64_t seed = mix(episode_.seed + board_.round * 97 + number) + board_.step++;
    guarded(step.fault, [&] {
      if (!step.restarts) {
        Client(indexes_, board_, number + 1, share, seed, step).run();
        return;
      }
      Step part = step;
      part.operations = step.operations / kChunks;
      for (unsigned i = 0; i < kChunks; ++i) {
        std::thread([&] {
          guarded(step.fault,
                  [&] { Client(indexes_, board_, number + 1, share, seed + i, part).run(); });
        }).join();
        ++board_.counters.threads;
      }
    });
    --running_;
  }

  /// While syncs fail, another thread that looks at a pool may find one that has just failed.
  template <class F>
  void guarded(Fault fault, F&& body) {
    faults::exempt_this_thread();
    try {
      body();
    } catch (const std::exception& error) {
      const auto* refusal = dynamic_cast<const Error*>(&error);
      if (fault == Fault::sync && refusal != nullptr && refusal->code() == Errc::io_error) return;
      end_with(board_, what_of(error));
    }
  }

  // Kills the process after that many operations, or after all of them.
  void kill_at(const Round& round, std::uint64_t operations) {
    faults::exempt_this_thread();
    while (board_.counters.operations < operations && running_ > 0)
      std::this_thread::sleep_for(microseconds(100));
    Rng rng(mix(episode_.seed ^ operations));
    std::this_thread::sleep_for(microseconds(rng.below(3000)));
    if (round.ending == Ending::orphan || round.ending == Ending::daemon) {
      Scene scene{indexes_, pools_, paths_, episode_, board_, rng, starting_, {}};
      round.ending == Ending::orphan ? leave_orphan(scene) : become_daemon(scene);
    }
    board_.power_lost = round.ending == Ending::power;
    ++board_.counters.kills;
    board_.openings_killed = 0;
    board_.opened = false;
    ++board_.round;
    const bool ends_at_once = round.ending == Ending::power || round.ending == Ending::daemon;
    die(board_, starting_, ends_at_once ? SIGKILL : round.signal);
  }

  const Episode& episode_;
  Ground& ground_;
  Board& board_;
  const std::vector<std::string>& paths_;
  Rng rng_{0};
  std::vector<std::optional<Pool>> pools_;
  OpenIndexes indexes_;
  std::atomic<unsigned> running_{0};
  std::mutex starting_;
};

}  // namespace

int run_worker(const Episode& episode, Ground& ground, const std::vector<std::string>& paths) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  faults::exempt_this_thread();
  report_crashes(ground.board());
  if (episode.bad_alloc) faults::accept_bad_alloc();
  allow_suspension();
  try {
    Worker(episode, ground, paths).run();
    return 0;
  } catch (const std::exception& error) {
    end_with(ground.board(), what_of(error));
  }
}

}  // namespace perdix::test::storm
