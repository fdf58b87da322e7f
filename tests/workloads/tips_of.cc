// Containers of numbers by TipsOf. A step is one write, which changes some keys or many.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <perdix/tips_of.h>

#include "index/tips_of/test_points.h"
#include "workloads/workloads.h"

namespace perdix::test {
namespace {

namespace tips_of = detail::index::tips_of;
using detail::util::Random;
using testing::Effects;
using testing::State;
using testing::Step;
using testing::StepResult;
using tips_of::TestNumber;

/// What a write does: a key gets a value or is erased, one after the other.
using Changes = std::vector<std::pair<TestNumber, std::optional<TestNumber>>>;

/// A step has the seed of its changes.
Changes changes_of(const Step& step) {
  constexpr TestNumber kKeys = 300;
  constexpr std::uint64_t kLargeBatchInterval = 20;
  Random random(std::stoull(step.value));
  Changes changes(1 + random.below(random.one_in(kLargeBatchInterval) ? 200 : 4));
  for (auto& [key, value] : changes) {
    key = random.below(kKeys);
    if (!random.one_in(3)) value = random.below(1'000'000'000);
  }
  return changes;
}

template <class Calls>
class ContainerInstance final : public testing::Instance {
 public:
  ContainerInstance(const Pool& pool, const std::string& name) : container_(pool, name) {}

  testing::Problems check() override { return container_.check().problems; }

  StepResult apply(const Step& step) override {
    const Changes changes = changes_of(step);
    container_.write([&](auto& container) {
      for (const auto& [key, value] : changes)
        value ? Calls::put(container, key, *value) : Calls::erase(container, key);
    });
    return StepResult::write(true);
  }

  bool shows(const State& state) override {
    return container_.read([&](const auto& container) {
      State found;
      for (const auto& element : container) {
        const auto [key, value] = Calls::pair_of(element);
        found.emplace(std::to_string(key), std::to_string(value));
      }
      return found == state;
    });
  }

  std::vector<std::function<void()>> companions() override {
    return {[this] {
      container_.read([](const auto& container) {
        std::map<TestNumber, TestNumber> model;
        for (const auto& element : container) model.insert(Calls::pair_of(element));
      });
    }};
  }

  std::vector<testing::NamedCall> calls() override {
    return {{"write", true,
             [this] {
               apply({0, "", "1"});
             }},
            {"read", false, companions().front()},
            {"size", false, [this] { (void)container_.size(); }},
            {"stats", false, [this] { (void)container_.stats(); }},
            {"check", false, [this] { (void)container_.check(); }}};
  }

 private:
  TipsOf<typename Calls::Container> container_;
};

class ContainerWorkload final : public testing::Workload {
 public:
  Step next_step(Random& random, const State&, unsigned, unsigned) override {
    return {0, "", std::to_string(random())};
  }

  Effects effects(const Step& step, const State&) const override {
    Effects effects;
    for (const auto& [key, value] : changes_of(step)) {
      effects.push_back({std::to_string(key), std::nullopt});
      if (value) effects.back().after = std::to_string(*value);
    }
    return effects;
  }

  std::string describe(const Step& step) const override {
    return fmt::format("write {} changes of seed {}", changes_of(step).size(), step.value);
  }
};

}  // namespace

std::vector<WorkloadEntry> tips_of_workloads() {
  std::vector<WorkloadEntry> entries;
  tips_of::for_each_tested("", [&](auto calls) {
    using Calls = decltype(calls);
    entries.push_back({fmt::format("tips_of:{}", Calls::kName), std::chrono::milliseconds(25),
                       [] { return std::make_unique<ContainerWorkload>(); },
                       [](const Pool& pool, const std::string& name) {
                         return std::make_unique<ContainerInstance<Calls>>(pool, name);
                       }});
  });
  return entries;
}

}  // namespace perdix::test
