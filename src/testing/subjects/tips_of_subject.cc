#include "testing/subjects/tips_of_subject.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <perdix/pool.h>
#include <perdix/tips_of.h>

#include "index/tips_of/test_points.h"
#include "pool/pool_core.h"
#include "testing/subjects/pool_blocks.h"
#include "testing/subjects/pool_medium.h"

namespace perdix::testing {
namespace {

namespace tips_of = detail::index::tips_of;

constexpr unsigned kContainerKeys = 120;

/// A drop takes all elements along, so that little is left to explore after it.
constexpr unsigned kDropInterval = 40;

enum ContainerAction : unsigned {
  kPutKey,
  kEraseKey,
  kReadKey,
  kPutSeveral,
  kEraseSeveral,
  kThrow,
  kDropContainer,
};

std::string key_text(std::uint64_t number) { return fmt::format("{:03}", number); }
std::uint64_t number_of(const std::string& text) { return std::stoull(text); }

/// The keys of a step that changes several: some that follow on its own.
std::vector<std::string> keys_of(const Step& step) {
  constexpr std::uint64_t kSeveral = 15;
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < kSeveral; ++i)
    keys.push_back(key_text((number_of(step.key) + i * 7) % kContainerKeys));
  return keys;
}

template <class Calls>
class OpenedContainer final : public Opened {
 public:
  using C = typename Calls::Container;

  OpenedContainer(Medium& medium, detail::pm::Domain domain)
      : pool_(Pool::open(medium.path(), pool_options(domain))) {
    container_.emplace(pool_, "c");
    settle(*pool_.core());
  }

  State contents() override {
    return container_->read([](const C& container) {
      State state;
      for (const auto& element : container) {
        const auto [key, value] = Calls::pair_of(element);
        state.emplace(key_text(key), std::to_string(value));
      }
      return state;
    });
  }

  /// Each pair is found by its key, too.
  Problems check() override {
    Problems problems = container_->check().problems;
    for (const auto& [key, value] : contents()) {
      if (read(key) != value) problems.push_back(fmt::format("key {} is not found", key));
    }
    if (container_->size() != contents().size()) problems.emplace_back("a wrong size");
    return problems;
  }

  StepResult apply(const Step& step) override {
    const StepResult result = call(step);
    settle(*pool_.core());
    return result;
  }

  Problems close() override {
    container_.reset();
    Problems problems = pool_.check().problems;
    pool_.close();
    return problems;
  }

 private:
  std::optional<std::string> read(const std::string& key) const {
    const auto value =
        container_->read([&](const C& container) { return Calls::get(container, number_of(key)); });
    return value ? std::optional(std::to_string(*value)) : std::nullopt;
  }

  static bool erase(C& container, const std::string& key) {
    const bool there = Calls::get(container, number_of(key)).has_value();
    if (there) Calls::erase(container, number_of(key));
    return there;
  }

  StepResult call(const Step& step) {
    if (step.action == kReadKey) return StepResult::read(read(step.key));
    if (step.action == kDropContainer) return StepResult::write(drop());
    try {
      return StepResult::write(
          container_->write([&](C& container) { return change(container, step); }));
    } catch (const Step&) {
      return StepResult::write(false);
    }
  }

  /// The container goes, and an empty one takes its name. True if elements went with it.
  bool drop() {
    const bool changes = container_->size() > 0;
    container_.reset();
    pool_.drop("c");
    settle(*pool_.core());
    container_.emplace(pool_, "c");
    return changes;
  }

  static bool change(C& container, const Step& step) {
    const std::uint64_t value = number_of(step.value);
    switch (step.action) {
      case kPutKey: Calls::put(container, number_of(step.key), value); return true;
      case kEraseKey: return erase(container, step.key);
      case kEraseSeveral: {
        bool any = false;
        for (const std::string& key : keys_of(step)) any |= erase(container, key);
        return any;
      }
      default:
        for (const std::string& key : keys_of(step)) Calls::put(container, number_of(key), value);
        if (step.action == kThrow) throw step;
        return true;
    }
  }

  Pool pool_;
  std::optional<TipsOf<C>> container_;
};

template <class Calls>
class ContainerSubject final : public Subject {
 public:
  explicit ContainerSubject(detail::pm::Domain domain) : domain_(domain) {}

  std::uint64_t size() const override { return kPoolSize; }

  State create(Medium& medium, detail::util::Random& random) override {
    make_pool(medium, domain_);
    State state;
    if (random.one_in(4)) return state;  // the first opening creates the container
    OpenedContainer<Calls> opened(medium, domain_);
    for (std::uint64_t steps = random.below(60); steps > 0; --steps) {
      const Step step = next_step(random, state, 0, 1);
      opened.apply(step);
      apply_effects(effects(step, state), state);
    }
    opened.close();
    return state;
  }

  std::unique_ptr<Opened> open(Medium& medium) override {
    return std::make_unique<OpenedContainer<Calls>>(medium, domain_);
  }

  Step next_step(detail::util::Random& random, const State&, unsigned, unsigned) override {
    static constexpr std::array kActions = {kPutKey,  kPutKey,     kPutKey,       kEraseKey,
                                            kReadKey, kPutSeveral, kEraseSeveral, kThrow};
    if (random.one_in(kDropInterval)) return {kDropContainer, key_text(0), "0"};
    return {kActions[random.below(kActions.size())], key_text(random.below(kContainerKeys)),
            std::to_string(random.below(1'000'000'000))};
  }

  Effects effects(const Step& step, const State& state) const override {
    Effects effects;
    switch (step.action) {
      case kPutKey: return {{step.key, step.value}};
      case kEraseKey:
        if (state.contains(step.key)) effects.push_back({step.key, std::nullopt});
        return effects;
      case kPutSeveral:
        for (const std::string& key : keys_of(step)) effects.push_back({key, step.value});
        return effects;
      case kEraseSeveral:
        for (const std::string& key : keys_of(step))
          if (state.contains(key)) effects.push_back({key, std::nullopt});
        return effects;
      case kDropContainer:
        for (const auto& [key, value] : state) effects.push_back({key, std::nullopt});
        return effects;
      default: return effects;
    }
  }

  std::string describe(const Step& step) const override {
    static constexpr std::array<const char*, 7> kNames = {
        "put", "erase", "read", "put several", "erase several", "throw", "drop"};
    return fmt::format("{} {} {}", kNames[step.action], step.key, step.value);
  }

 private:
  detail::pm::Domain domain_;
};

template <class Calls>
SubjectEntry entry_of(const char* name) {
  return {fmt::format("tips_of:{}", name), 1, [](detail::pm::Domain domain) {
            return std::unique_ptr<Subject>(std::make_unique<ContainerSubject<Calls>>(domain));
          }};
}

}  // namespace

std::vector<SubjectEntry> tips_of_subjects() {
  return {entry_of<tips_of::StdMap>("map"), entry_of<tips_of::StdUnorderedMap>("unordered_map"),
          entry_of<tips_of::FlatMap>("flat_map"), entry_of<tips_of::RobinMap>("robin_map"),
          entry_of<tips_of::StdMapOfStrings>("map_of_strings")};
}

}  // namespace perdix::testing
