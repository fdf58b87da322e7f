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

#include "kill/child.h"

namespace perdix::test::kill {

class StepsRole final : public Role {
 public:
  StepsRole(const Plan& plan, std::uint64_t steps)
      : entry_(*plan.workload()), course_(entry_, plan.seed, steps) {}

  void open(const Pool& pool) override { instance_ = entry_.open(pool, std::string(kIndexName)); }

  [[noreturn]] void write(const Pool&, const Sender& sender) override {
    std::vector<std::jthread> threads;
    for (const auto& call : instance_->companions())
      threads.emplace_back([&, call] { repeat(sender, call); });
    repeat(sender, [&] {
      const auto number = static_cast<std::uint32_t>(course_.steps());
      course_.step(*instance_);
      sender.send(Record::Type::done, 0, number, 1);
    });
  }

  void verify(Pool& pool, const Sender& sender) override {
    require_none("check(): ", instance_->check());
    const bool happened = course_.next_has_happened(*instance_);
    sender.send(Record::Type::pair, 0, happened ? 1 : 0, 0);
    instance_.reset();
    require_none("Pool::check(): ", pool.check().problems);
  }

 private:
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

  const WorkloadEntry& entry_;
  Course course_;
  std::unique_ptr<testing::Instance> instance_;
  std::mutex problem_mutex_;
};

}  // namespace perdix::test::kill
