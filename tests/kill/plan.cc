#include "kill/plan.h"

#include <array>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "converted/indexes.h"
#include "install/outside/list.h"
#include "support/typed_index.h"

namespace perdix::test::kill {
namespace {

constexpr std::array kModes = {Mode::alone, Mode::apart, Mode::together};

Mode mode_named(std::string_view name) {
  for (const Mode mode : kModes) {
    if (name_of(mode) == name) return mode;
  }
  throw std::invalid_argument(fmt::format("--mode {}: choose alone, apart or together", name));
}

bool apart(const Plan& plan) { return plan.mode == Mode::apart; }

using Lists = tips::User<"list", SortedList>;

template <class K, class V>
AnyIndex open_list(const Pool& pool, std::string_view name) {
  return AnyIndex(std::make_unique<TypedIndex<Tips<Lists, K, V>>>(pool, name));
}

template <class K, class V>
IndexType type_of_lists() {
  const std::string engine(Lists::kEngine);
  return {engine, engine, kKindOf<K>, kKindOf<V>, true, nullptr, open_list<K, V>, nullptr};
}

}  // namespace

const std::vector<IndexType>& killed_types() {
  static const std::vector<IndexType> types = [] {
    std::vector<IndexType> all(index_types().begin(), index_types().end());
    all.push_back(type_of_lists<std::uint64_t, std::string>());
    all.push_back(type_of_lists<std::string, std::uint64_t>());
    for (IndexType& type : converted_types()) all.push_back(std::move(type));
    return all;
  }();
  return types;
}

PoolOptions pool_options(const Plan& plan) {
  PoolOptions options = options_for(plan.domain);
  for (const auto& plugins : {Lists::plugins(), converted_plugins()})
    options.plugins.insert(options.plugins.end(), plugins.begin(), plugins.end());
  return options;
}

std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::alone: return "alone";
    case Mode::apart: return "apart";
    case Mode::together: return "together";
  }
  return "";
}

Plan Plan::from(const Options& options) {
  Plan plan;
  plan.engine = options.text("engine");
  plan.kinds = options.text("kinds");
  const auto domain = domain_named(options.text("domain"));
  if (!domain) {
    throw std::invalid_argument("--domain: choose process, memory_controller or page_cache");
  }
  plan.domain = *domain;
  plan.mode = mode_named(options.text("mode"));
  plan.threads = static_cast<unsigned>(options.number("threads", 1));
  plan.seed = options.number("seed", 0);
  return plan;
}

std::vector<std::string> Plan::arguments() const {
  return {"--engine",  engine,
          "--kinds",   kinds,
          "--domain",  std::string(test::name_of(domain)),
          "--mode",    std::string(name_of(mode)),
          "--threads", std::to_string(threads),
          "--seed",    std::to_string(seed)};
}

std::chrono::microseconds Plan::time_to_run(Rng& rng) const {
  std::chrono::microseconds longest(rng.once_in(2) ? 2'000 : 25'000);
  if (const WorkloadEntry* entry = workload()) longest = entry->longest_run;
  return std::chrono::microseconds(rng.below(static_cast<std::uint64_t>(longest.count())));
}

std::string show_tag(std::uint64_t packed) {
  if (packed == 0) return "no value";
  const Tag tag = Tag::unpack(packed);
  return fmt::format("the value of round {}, thread {}, operation {}", tag.round, tag.thread,
                     tag.number);
}

Stream::Stream(const Plan& plan, unsigned round, unsigned thread)
    : plan_(plan),
      round_(round),
      thread_(thread),
      workload_(mix(plan.seed) ^ mix((std::uint64_t{round} << 8 | thread) + 1), write_profile(),
                apart(plan) ? plan.keys() / plan.threads : plan.keys()) {}

Command Stream::next() {
  const Step step = workload_.next();
  // Apart, neighbours in the set belong to different threads, so that these meet in every leaf.
  const std::size_t key = apart(plan_) ? step.key * plan_.threads + thread_ : step.key;
  return {step.op, key, Tag{round_, thread_, number_++}.pack()};
}

}  // namespace perdix::test::kill
