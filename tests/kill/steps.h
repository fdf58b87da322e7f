// The children of a kill test over a workload: one thread that makes its steps, beside its
// companions, until it is killed; and a verification, whose contents must be those after all steps
// that were acknowledged, or after the next one too.
#pragma once

#include <unistd.h>

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "kill/child.h"
#include "support/compare.h"

namespace perdix::test::kill {

class StepsRole final : public Role {
 public:
  /// Repeats the steps that have happened in the model.
  StepsRole(const Plan& plan, std::uint64_t steps)
      : workload_(plan.workload()->make()), random_(plan.seed), steps_(steps) {
    for (std::uint64_t i = 0; i < steps; ++i) advance(next());
  }

  void open(const Pool& pool) override { instance_ = workload_->open(pool); }

  [[noreturn]] void write(const Pool&, const Sender& sender) override {
    std::vector<std::jthread> threads;
    for (const auto& call : instance_->companions())
      threads.emplace_back([&, call] { repeat(sender, call); });
    repeat(sender, [&] {
      const testing::Step step = next();
      const testing::Effects effects = workload_->effects(step, state_);
      if (instance_->apply(step).changed == effects.empty())
        throw std::runtime_error("a wrong result of " + workload_->describe(step));
      testing::apply_effects(effects, state_);
      sender.send(Record::Type::done, 0, static_cast<std::uint32_t>(steps_++), 1);
    });
  }

  void verify(Pool& pool, const Sender& sender) override {
    require_none("check(): ", instance_->check());
    const bool next_happened = !instance_->shows(state_);
    if (next_happened) {
      advance(next());
      if (!instance_->shows(state_)) {
        throw std::runtime_error(
            fmt::format("the contents are not those after {} steps, or one more", steps_));
      }
    }
    sender.send(Record::Type::pair, 0, next_happened ? 1 : 0, 0);
    instance_.reset();
    require_none("Pool::check(): ", pool.check().problems);
  }

 private:
  testing::Step next() { return workload_->next_step(random_, state_, 0, 1); }
  void advance(const testing::Step& step) {
    testing::apply_effects(workload_->effects(step, state_), state_);
  }

  static void require_none(const char* where, const testing::Problems& problems) {
    if (!problems.empty()) throw std::runtime_error(where + problems.front());
  }

  template <class Act>
  [[noreturn]] void repeat(const Sender& sender, const Act& act) {
    try {
      for (;;) act();
    } catch (const std::exception& error) {
      const std::lock_guard lock(problem_mutex_);
      sender.problem(std::string("write process: ") + error.what());
      ::_exit(1);
    }
  }

  const std::unique_ptr<PoolWorkload> workload_;
  detail::util::Random random_;
  std::uint64_t steps_;
  testing::State state_;
  std::unique_ptr<testing::Instance> instance_;
  std::mutex problem_mutex_;
};

}  // namespace perdix::test::kill
