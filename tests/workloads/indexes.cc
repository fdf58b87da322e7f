// Indexes with few keys, each by the typed calls of its class. Contents are numbers, which stand
// for keys and values of the index's kinds.
#include <cstdint>
#include <optional>
#include <string>

#include "support/compare.h"
#include "support/values.h"
#include "workloads/workloads.h"

namespace perdix::test {
namespace {

using testing::Effects;
using testing::NamedCall;
using testing::State;
using testing::StepResult;

constexpr std::uint64_t kKeys = 300;

Datum key_of(Kind kind, std::uint64_t number) {
  const std::uint64_t mixed = number * 0x9e3779b97f4a7c15ull % 100000;
  return kind == Kind::u64 ? Datum(mixed) : Datum("key " + std::to_string(100000 + mixed));
}

class IndexInstance final : public testing::Instance {
 public:
  IndexInstance(const IndexType& type, const Pool& pool, const std::string& name)
      : type_(type), index_(type.open(pool, name)) {}

  testing::Problems check() override { return index_.check().problems; }

  StepResult apply(const testing::Step& step) override {
    return StepResult::write(
        make_change(index_, static_cast<Op>(step.action), key_of(step.key), value_of(step.value)));
  }

  bool shows(const State& state) override {
    Model model;
    for (const auto& [key, value] : state) model.put(key_of(key), value_of(value));
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      const Datum key = key_of(std::to_string(i));
      if (index_.get(key) != model.get(key)) return false;
    }
    return compare_pairs(index_, model).empty() && index_.size() == model.size();
  }

  std::vector<std::function<void()>> companions() override {
    return {[this] { index_.visit_all([](DatumView, DatumView) { return true; }); }};
  }

  std::vector<NamedCall> calls() override {
    const Datum key = key_of("0"), value = value_of("1");
    std::vector<NamedCall> calls = {
        {"put", true, [=, this] { index_.put(key, value); }},
        {"insert", true, [=, this] { index_.insert(key, value); }},
        {"update", true, [=, this] { index_.update(key, value); }},
        {"erase", true, [=, this] { index_.erase(key); }},
        {"get", false, [=, this] { index_.get(key); }},
        {"contains", false, [=, this] { index_.contains(key); }},
        {"get_many", false,
         [=, this] {
           index_.get_many({key, key});
         }},
        {"visit", false, companions().front()},
        {"size", false, [this] { index_.size(); }},
        {"stats", false, [this] { index_.stats(); }},
        {"check", false, [this] { index_.check(); }},
    };
    if (index_.ordered()) calls.push_back({"scan", false, [=, this] { index_.scan(key, 10); }});
    return calls;
  }

 private:
  Datum key_of(const std::string& text) const {
    return test::key_of(type_.key_kind, std::stoull(text));
  }
  Datum value_of(const std::string& text) const {
    return tagged_value(type_.value_kind, std::stoull(text));
  }

  const IndexType& type_;
  AnyIndex index_;
};

class IndexWorkload final : public testing::Workload {
 public:
  testing::Step next_step(detail::util::Random& random, const State&, unsigned thread,
                          unsigned threads) override {
    const std::uint64_t key = random.below(kKeys / threads) * threads + thread;
    return {static_cast<unsigned>(random.below(4)), std::to_string(key),
            std::to_string(1000 + ++values_)};
  }

  Effects effects(const testing::Step& step, const State& state) const override {
    const bool there = state.contains(step.key);
    switch (static_cast<Op>(step.action)) {
      case Op::put: return {{step.key, step.value}};
      case Op::insert: return there ? Effects{} : Effects{{step.key, step.value}};
      case Op::update: return there ? Effects{{step.key, step.value}} : Effects{};
      default: return there ? Effects{{step.key, std::nullopt}} : Effects{};
    }
  }

  std::string describe(const testing::Step& step) const override {
    return std::string(to_string(static_cast<Op>(step.action))) + " of key " + step.key;
  }

 private:
  std::uint64_t values_ = 0;
};

}  // namespace

std::vector<WorkloadEntry> index_workloads() {
  std::vector<WorkloadEntry> entries;
  for (const IndexType& type : few_index_types()) {
    entries.push_back({type.name + "_" + type.kinds(), std::chrono::milliseconds(25),
                       [] { return std::make_unique<IndexWorkload>(); },
                       [&type](const Pool& pool, const std::string& name) {
                         return std::make_unique<IndexInstance>(type, pool, name);
                       },
                       &type});
  }
  return entries;
}

}  // namespace perdix::test
