#include "testing/session.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace perdix::testing {
namespace {

class Run {
 public:
  Run(Subject& subject, Medium& medium, Recorder& recorder, const SessionPlan& plan)
      : subject_(subject), medium_(medium), recorder_(recorder), plan_(plan), random_(plan.seed) {}

  Session run() {
    recorder_.start(random_(), plan_.threads == 1);
    try {
      live();
    } catch (const std::exception& error) {
      problem(fmt::format("{}: {}", session_.opened ? "failed" : "can't be opened and used",
                          error.what()));
    }
    session_.trace = recorder_.stop();
    return std::move(session_);
  }

 private:
  void live() {
    const std::unique_ptr<Opened> opened = subject_.open(medium_);
    if (plan_.known != nullptr) work_blindly(*opened);
    if (!session_.problems.empty()) return;
    session_.observed = opened->contents();
    session_.opened = true;
    recorder_.mark(Event::Kind::observe, 0);
    problems(opened->check());
    if (!session_.problems.empty()) return;
    state_ = session_.observed;
    work(*opened);
    if (!session_.problems.empty()) return;
    const State now = opened->contents();
    if (now != state_) {
      for (const std::string& difference : Expectation(subject_, state_).explain(now))
        problem("afterwards " + difference);
    }
    problems(opened->check());
    problems(opened->close());
  }

  /// Makes steps whose results do not depend on what the crash has left undecided.
  void work_blindly(Opened& opened) {
    state_ = plan_.known->state();
    for (unsigned i = 0; i < plan_.first_steps && session_.problems.empty(); ++i) {
      Step drawn = subject_.next_step(random_, state_, 0, 1);
      if (!plan_.known->is_settled(drawn)) continue;
      session_.calls.push_back({std::move(drawn), {}});
      step(opened, static_cast<std::uint32_t>(session_.calls.size() - 1));
    }
  }

  void work(Opened& opened) {
    if (plan_.threads == 1) {
      for (unsigned i = 0; i < plan_.steps; ++i) step(opened, draw(0));
      return;
    }
    // What one thread has changed another must be able to change.
    const unsigned half = plan_.steps / 2;
    for (const unsigned steps : {half, plan_.steps - half}) work_together(opened, steps);
  }

  /// New threads make this many steps each.
  void work_together(Opened& opened, unsigned steps) {
    // Drawn ahead, so that a thread's steps do not depend on the schedule.
    std::vector<std::vector<std::uint32_t>> drawn(plan_.threads);
    const State before = state_;
    for (unsigned thread = 0; thread < plan_.threads; ++thread) {
      for (unsigned i = 0; i < steps; ++i) {
        drawn[thread].push_back(draw(thread));
        change(session_.calls.back().step);
      }
    }
    state_ = before;
    Turns turns(plan_.threads, random_(), plan_.switching);
    recorder_.take_turns(&turns);
    std::vector<std::thread> threads;
    std::atomic<unsigned> entered{0};
    for (unsigned thread = 0; thread < plan_.threads; ++thread) {
      threads.emplace_back([&, thread] {
        recorder_.enter(thread);
        ++entered;
        while (entered < plan_.threads) std::this_thread::yield();
        try {
          for (const std::uint32_t number : drawn[thread]) step(opened, number);
        } catch (const std::exception& error) {
          problem(fmt::format("thread {} failed: {}", thread, error.what()));
        }
        turns.leave(thread);
      });
    }
    for (std::thread& thread : threads) thread.join();
    recorder_.take_turns(nullptr);
  }

  std::uint32_t draw(unsigned thread) {
    session_.calls.push_back({subject_.next_step(random_, state_, thread, plan_.threads), {}});
    return static_cast<std::uint32_t>(session_.calls.size() - 1);
  }

  void step(Opened& opened, std::uint32_t number) {
    Call& call = session_.calls[number];
    recorder_.mark(Event::Kind::begin, number);
    call.result = opened.apply(call.step);
    recorder_.mark(Event::Kind::end, number);
    const std::lock_guard lock(mutex_);
    if (call.result.refused) return;
    const bool changes = change(call.step);
    if (!call.result.reads && call.result.changed != changes) {
      session_.problems.push_back(
          fmt::format("{} returned {}", subject_.describe(call.step), call.result.changed));
    }
    if (call.result.reads && plan_.threads == 1) {
      const auto it = state_.find(call.step.key);
      if (call.result.value != (it == state_.end() ? std::nullopt : std::optional(it->second)))
        session_.problems.push_back(
            fmt::format("{} found something else", subject_.describe(call.step)));
    }
  }

  /// Applies the effects of a step to the expected contents. False if there are none.
  bool change(const Step& step) {
    const Effects effects = subject_.effects(step, state_);
    apply_effects(effects, state_);
    return !effects.empty();
  }

  void problem(std::string what) {
    const std::lock_guard lock(mutex_);
    session_.problems.push_back(std::move(what));
  }
  void problems(const Problems& found) {
    for (const std::string& what : found) problem(what);
  }

  Subject& subject_;
  Medium& medium_;
  Recorder& recorder_;
  const SessionPlan plan_;
  detail::util::Random random_;
  Session session_;
  State state_;  // as it should be
  std::mutex mutex_;
};

}  // namespace

Session run_session(Subject& subject, Medium& medium, Recorder& recorder, const SessionPlan& plan) {
  return Run(subject, medium, recorder, plan).run();
}

}  // namespace perdix::testing
