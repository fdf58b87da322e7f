#include "storm/plan.h"

#include <algorithm>
#include <csignal>
#include <stdexcept>

#include <fmt/format.h>

#include "engine_list.h"
#include "index/elimda/options.h"
#include "index/test_options.h"
#include "support/rng.h"

namespace perdix::test::storm {
namespace {

constexpr std::uint64_t kRoomyPool = std::uint64_t{1} << 34;
constexpr std::uint64_t kMaxBytes = 64 * kMiB;  ///< of keys and values of an index that fits
constexpr std::array<std::uint32_t, 9> kPrefixes = {8, 31, 33, 40, 64, 255, 600, 1500, 4096};
constexpr std::array<std::uint64_t, 6> kBudgets = {0,        16 * kKiB,  256 * kKiB,
                                                   4 * kMiB, kUnlimited, kUnlimited};
constexpr auto kEngines = std::apply(
    [](const auto&... traits) { return std::array{traits.kTraits.engine...}; }, EngineList());
constexpr std::array kOtherWords = {"kills-while-opening",
                                    "visitors",
                                    "restarts",
                                    "tight",
                                    "damage",
                                    "millions",
                                    "large",
                                    "page_cache",
                                    "memory_controller",
                                    "default-options",
                                    "background",
                                    "bad_alloc",
                                    "closed-pool",
                                    "leftovers",
                                    "bounds"};

/// How much an episode holds and does.
struct Scale {
  std::uint32_t least, most;  ///< keys of an index
  std::uint64_t operations;   ///< of a step, in all threads
};
constexpr Scale kTiny = {4, 2'000, 12'000};
constexpr Scale kSmall = {1'000, 20'000, 60'000};
constexpr Scale kMedium = {20'000, 200'000, 300'000};
constexpr Scale kMillions = {1'000'000, 2'000'000, 1'500'000};

/// Draws the same numbers whatever is left out, so that a finding's seed keeps its meaning.
class Maker {
 public:
  Maker(std::uint64_t seed, std::uint64_t number, const Selection& selection)
      : rng_(mix(mix(seed) + number)), selection_(selection) {
    episode_.seed = mix(mix(seed) ^ number);
    episode_.leftovers = !without("leftovers");
    episode_.bad_alloc = without("bad_alloc");
    episode_.closed_pool = !without("closed-pool");
    episode_.bounds = !without("bounds");
  }

  Episode make() {
    scale_ = draw_scale();
    const unsigned pools = rng_.once_in(4) ? 2 : 1;
    for (unsigned i = 0; i < pools; ++i) episode_.pools.push_back(pool());
    const auto indexes = static_cast<unsigned>(rng_.between(1, scale_.least < 100'000 ? 3 : 1));
    for (unsigned i = 0; i < std::max(indexes, pools); ++i) episode_.indexes.push_back(index(i));
    const std::uint64_t rounds = std::min<std::uint64_t>(rng_.between(2, 4), heavy() ? 2 : 4);
    for (std::uint64_t i = 0; i < rounds; ++i) episode_.rounds.push_back(round(i));
    return std::move(episode_);
  }

 private:
  bool without(std::string_view word) const { return selection_.without.count(word) != 0; }

  bool with(std::string_view word) const { return selection_.with.count(word) != 0; }

  /// True once in n times, unless it is left out; always, if it is asked for.
  bool now_and_then(std::uint64_t n, std::string_view word) {
    return (rng_.once_in(n) || with(word)) && !without(word);
  }

  template <class T>
  T unless_without(T drawn) const {
    return without(name_of(drawn)) ? T{} : drawn;
  }

  /// One of those that are asked for, if any of them is; else `drawn`, unless it is left out.
  template <class T, std::size_t n>
  T wanted_of(const std::array<T, n>& choices, T drawn) {
    std::vector<T> wanted;
    for (const T choice : choices) {
      if (with(name_of(choice))) wanted.push_back(choice);
    }
    if (wanted.empty()) return unless_without(drawn);
    return wanted[rng_.below(wanted.size())];
  }

  template <class T, std::size_t n>
  bool wants_any_of(const std::array<T, n>& choices) const {
    return std::any_of(choices.begin(), choices.end(), [&](T t) { return with(name_of(t)); });
  }

  template <class T, std::size_t n>
  T one_of(const std::array<T, n>& choices) {
    return choices[rng_.below(n)];
  }

  Scale draw_scale() {
    const std::uint64_t dice = rng_.below(100);
    if (with("large")) return kMedium;
    if (dice < 35) return kTiny;
    if (dice < 72) return kSmall;
    if (dice < 95 || without("millions")) return without("large") ? kSmall : kMedium;
    return kMillions;
  }

  PoolPlan pool() {
    PoolPlan plan;
    const std::uint64_t dice = rng_.below(10);
    const bool small = scale_.least < 20'000;
    if (small && (dice >= 7 || with("page_cache")) && !without("page_cache"))
      plan.domain = Domain::page_cache;
    else if (dice == 6 && !without("memory_controller"))
      plan.domain = Domain::memory_controller;
    const std::uint64_t most = one_of(std::array<std::uint64_t, 4>{16, 16, 32, 48}) * kMiB;
    plan.tight = now_and_then(3, "tight");
    plan.max_size = plan.tight ? most : kRoomyPool;
    return plan;
  }

  const IndexType& draw_type() {
    const std::string engine(selection_.engine.empty() ? one_of(kEngines) : selection_.engine);
    std::vector<const IndexType*> fitting;
    for (const IndexType& type : index_types()) {
      if (type.name == engine && (selection_.kinds.empty() || type.kinds() == selection_.kinds))
        fitting.push_back(&type);
    }
    if (fitting.empty()) throw std::invalid_argument("no engine and kinds fit");
    return *fitting[rng_.below(fitting.size())];
  }

  Shape draw_shape(Kind kind) {
    for (;;) {
      const Shape shape = one_of(kShapes);
      if (without(name_of(shape)) || (kind == Kind::u64 && needs_bytes(shape))) continue;
      if (!selection_.shape.empty() && selection_.shape != name_of(shape)) {
        if (kind == Kind::bytes) continue;
      }
      return shape;
    }
  }

  IndexPlan index(unsigned number) {
    IndexPlan plan;
    plan.type = &draw_type();
    plan.name = fmt::format("index-{}", number);
    plan.pool = number % static_cast<unsigned>(episode_.pools.size());
    plan.keys = {plan.type->key_kind, draw_shape(plan.type->key_kind), one_of(kPrefixes), rng_()};
    plan.values = {plan.type->value_kind, draw_sizes()};
    plan.count = static_cast<std::uint32_t>(rng_.between(scale_.least, scale_.most));
    if (rng_.once_in(8)) plan.count = static_cast<std::uint32_t>(rng_.between(4, 12));
    const PoolPlan& pool = episode_.pools[plan.pool];
    const std::uint64_t pair = mean_bytes(plan);
    if (pool.tight) plan.count = static_cast<std::uint32_t>(pool.max_size * 2 / 3 / pair);
    plan.count = std::min(plan.count, static_cast<std::uint32_t>(kMaxBytes / pair));
    if (pool.domain == Domain::page_cache) plan.count = std::min<std::uint32_t>(plan.count, 8'000);
    plan.count = std::min(plan.count, plan.keys.most() - kHotKeys);
    if (scale_.least >= 20'000) plan.count = std::max<std::uint32_t>(plan.count, 16);
    return plan;
  }

  Sizes draw_sizes() {
    const std::uint64_t dice = rng_.below(10);
    if (dice < 5) return Sizes::small;
    if (dice < 8) return Sizes::mixed;
    return dice == 8 ? Sizes::large : Sizes::huge;
  }

  /// About what a pair occupies in a leaf and outside of it.
  static std::uint64_t mean_bytes(const IndexPlan& plan) {
    std::uint64_t key = 8;
    if (plan.keys.kind == Kind::bytes) key = 40;
    if (plan.keys.shape == Shape::prefix || plan.keys.shape == Shape::groups)
      key += plan.keys.prefix;
    if (plan.keys.shape == Shape::nested) key = 1100;
    std::uint64_t value = 8;
    if (plan.values.kind == Kind::bytes) {
      constexpr std::array<std::uint64_t, 4> kMeans = {40, 400, 20'000, 600'000};
      value = kMeans[static_cast<std::size_t>(plan.values.sizes)];
    }
    return key + value;
  }

  Round round(std::uint64_t number) {
    Round round;
    for (std::size_t i = 0; i < episode_.indexes.size(); ++i) {
      const std::string& engine = episode_.indexes[i].type->engine;
      IndexOptions options = usual_options(episode_.indexes[i]);
      detail::index::set_if_there(options, engine, "dram_budget", one_of(kBudgets));
      detail::index::set_if_there(options, engine, "technique",
                                  static_cast<Technique>((number + i) % 4));
      detail::index::set_if_there(options, engine, "media_units",
                                  static_cast<MediaUnits>((number + i) % 3));
      options.resume_in_background = rng_.once_in(2) && !without("background");
      round.options.push_back(options);
    }
    round.default_options = now_and_then(4, "default-options") && number > 0;
    round.opening_fault = rng_.once_in(3) || wants_any_of(kFaults) ? draw_fault() : Fault::none;
    round.closing_fault = rng_.once_in(4) ? draw_fault() : Fault::none;
    if (now_and_then(4, "kills-while-opening"))
      round.kills_while_opening = static_cast<unsigned>(rng_.between(1, 3));
    round.look_first = !rng_.once_in(3);
    const std::uint64_t steps = std::min<std::uint64_t>(rng_.between(1, 3), heavy() ? 2 : 3);
    for (std::uint64_t i = 0; i < steps; ++i) round.steps.push_back(step(number == 0 && i == 0));
    round.damage = now_and_then(5, "damage");
    constexpr std::array kEndings = {Ending::close, Ending::destroy, Ending::kill,
                                     Ending::kill,  Ending::orphan,  Ending::daemon};
    round.ending = wanted_of(kEndings, one_of(kEndings));
    const bool power = now_and_then(2, "power");
    const bool dies = round.ending >= Ending::kill || with("power");
    if (power && dies && all_survive_power()) round.ending = Ending::power;
    round.signal = one_of(std::array{SIGKILL, SIGKILL, SIGKILL, SIGSEGV, SIGABRT});
    round.kill_after = rng_.below(1000);
    return round;
  }

  /// Some indexes of few keys have the structure of large ones.
  static IndexOptions usual_options(const IndexPlan& index) {
    const detail::index::EngineTraits* traits =
        detail::index::find_traits(index.type->engine, EngineList());
    const bool small = traits != nullptr && traits->small && index.count < 20'000;
    return small && index.count % 2 == 0 ? traits->small() : IndexOptions{};
  }

  static constexpr std::array kFaults = {Fault::memory, Fault::map, Fault::space, Fault::sync,
                                         Fault::thread};

  Fault draw_fault() { return wanted_of(kFaults, one_of(kFaults)); }

  Step step(bool first) {
    constexpr std::array kWorks = {Work::churn, Work::fill, Work::drain, Work::churn, Work::few,
                                   Work::hot,   Work::fill, Work::drain, Work::read,  Work::idle};
    constexpr std::array kDisturbances = {
        Disturbance::forks, Disturbance::copies, Disturbance::recreate, Disturbance::suspend,
        Disturbance::stop,  Disturbance::burn,   Disturbance::misuse,   Disturbance::descriptors};
    Step step;
    const Work work = one_of(kWorks);
    step.work = first ? Work::fill : wanted_of(kWorks, work);
    step.order = one_of(std::array{Order::ascending, Order::descending, Order::random});
    const Disturbance disturbance = one_of(kDisturbances);
    if (rng_.once_in(2) || wants_any_of(kDisturbances))
      step.disturbance = wanted_of(kDisturbances, disturbance);
    const Fault fault = draw_fault();
    if (rng_.once_in(4) || wants_any_of(kFaults)) step.fault = fault;
    step.visitors = now_and_then(3, "visitors");
    step.bounds = episode_.bounds;
    step.restarts = now_and_then(4, "restarts");
    step.threads = static_cast<unsigned>(rng_.between(1, kMaxThreads));
    step.operations = rng_.between(scale_.operations / 4, scale_.operations) / step.threads;
    if (step.work == Work::few) step.operations = std::max<std::uint64_t>(step.operations, 60'000);
    if (any_page_cache()) step.operations = std::min<std::uint64_t>(step.operations, 3'000);
    std::uint64_t pair = 0;
    for (const IndexPlan& index : episode_.indexes) pair = std::max(pair, mean_bytes(index));
    step.operations = std::min(step.operations, kMaxBytes / pair / step.threads + 1);
    if (step.work == Work::fill) step.operations = operations_to_fill(step);
    if (step.work == Work::idle) step.operations = 40;
    return step;
  }

  /// Of each thread: a tight pool is filled to the end.
  std::uint64_t operations_to_fill(const Step& step) const {
    std::uint64_t operations = step.operations;
    for (const IndexPlan& index : episode_.indexes) {
      if (episode_.pools[index.pool].tight)
        operations = std::max<std::uint64_t>(operations, index.count / step.threads + 1);
    }
    return operations;
  }

  /// Whether its steps take long.
  bool heavy() const {
    return std::any_of(episode_.indexes.begin(), episode_.indexes.end(),
                       [](const IndexPlan& index) { return index.count > 150'000; });
  }

  bool all_survive_power() const {
    return std::all_of(episode_.pools.begin(), episode_.pools.end(),
                       [](const PoolPlan& pool) { return pool.domain == Domain::page_cache; });
  }

  bool any_page_cache() const {
    return std::any_of(episode_.pools.begin(), episode_.pools.end(),
                       [](const PoolPlan& pool) { return pool.domain == Domain::page_cache; });
  }

  Rng rng_;
  const Selection& selection_;
  Scale scale_ = kTiny;
  Episode episode_;
};

std::string show_technique(const IndexOptions& options) {
  const auto found = options.named.find("technique");
  return found == options.named.end() || found->second == "none" ? "" : " " + found->second;
}

std::string show_budget(std::uint64_t budget) {
  if (budget == kUnlimited) return "unlimited";
  return fmt::format("{} KiB", budget / kKiB);
}

std::string describe(const Round& round) {
  std::string text = "  round:";
  for (const IndexOptions& options : round.options) {
    text += fmt::format(" budget {}{}{},", show_budget(detail::index::dram_budget_of(options)),
                        show_technique(options),
                        options.resume_in_background ? "" : " without resuming");
  }
  if (round.default_options) text += " default pool options,";
  if (round.opening_fault != Fault::none)
    text += fmt::format(" opened under fault {},", name_of(round.opening_fault));
  if (round.kills_while_opening != 0)
    text += fmt::format(" killed {} times while opening,", round.kills_while_opening);
  if (!round.look_first) text += " works before it looks,";
  if (round.closing_fault != Fault::none)
    text += fmt::format(" closed under fault {},", name_of(round.closing_fault));
  text += fmt::format(" ends by {}", name_of(round.ending));
  if (round.ending >= Ending::kill) text += fmt::format(" with signal {}", round.signal);
  if (round.damage) text += ", damaged copies";
  return text + "\n";
}

}  // namespace

std::string_view name_of(Work work) {
  switch (work) {
    case Work::fill: return "fill";
    case Work::drain: return "drain";
    case Work::churn: return "churn";
    case Work::few: return "few";
    case Work::hot: return "hot";
    case Work::read: return "read";
    case Work::idle: return "idle";
  }
  return "";
}

std::string_view name_of(Order order) {
  switch (order) {
    case Order::ascending: return "ascending";
    case Order::descending: return "descending";
    case Order::random: return "random";
  }
  return "";
}

std::string_view name_of(Disturbance disturbance) {
  switch (disturbance) {
    case Disturbance::none: return "none";
    case Disturbance::forks: return "forks";
    case Disturbance::copies: return "copies";
    case Disturbance::recreate: return "recreate";
    case Disturbance::suspend: return "suspend";
    case Disturbance::stop: return "stop";
    case Disturbance::burn: return "burn";
    case Disturbance::misuse: return "misuse";
    case Disturbance::descriptors: return "descriptors";
  }
  return "";
}

std::string_view name_of(Fault fault) {
  switch (fault) {
    case Fault::none: return "none";
    case Fault::memory: return "memory";
    case Fault::map: return "map";
    case Fault::space: return "space";
    case Fault::sync: return "sync";
    case Fault::thread: return "thread";
  }
  return "";
}

std::string_view name_of(Ending ending) {
  switch (ending) {
    case Ending::close: return "close";
    case Ending::destroy: return "destroy";
    case Ending::kill: return "kill";
    case Ending::orphan: return "orphan";
    case Ending::daemon: return "daemon";
    case Ending::power: return "power";
  }
  return "";
}

Words parse_words(std::string_view words) {
  Words known(kOtherWords.begin(), kOtherWords.end());
  for (const Shape shape : kShapes) known.emplace(name_of(shape));
  for (int i = 0; i <= static_cast<int>(Work::idle); ++i) known.emplace(name_of(Work(i)));
  for (int i = 1; i <= static_cast<int>(Disturbance::descriptors); ++i)
    known.emplace(name_of(Disturbance(i)));
  for (int i = 1; i <= static_cast<int>(Fault::thread); ++i) known.emplace(name_of(Fault(i)));
  for (int i = 0; i <= static_cast<int>(Ending::power); ++i) known.emplace(name_of(Ending(i)));
  Words parsed;
  while (!words.empty()) {
    const std::size_t comma = std::min(words.find(','), words.size());
    const std::string word(words.substr(0, comma));
    words.remove_prefix(std::min(comma + 1, words.size()));
    if (known.count(word) == 0) {
      throw std::invalid_argument(
          fmt::format("no choice is called {}; these are: {}", word, fmt::join(known, ",")));
    }
    parsed.insert(word);
  }
  return parsed;
}

std::string engines_of(const Episode& episode, unsigned pool) {
  std::string text;
  for (const IndexPlan& plan : episode.indexes) {
    if (plan.pool != pool) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", plan.type->engine, plan.type->kinds());
  }
  return text;
}

Episode make_episode(std::uint64_t seed, std::uint64_t number, const Selection& selection) {
  return Maker(seed, number, selection).make();
}

std::string describe(const Step& step) {
  std::string text = fmt::format("{} {}, {} threads, {} operations each", name_of(step.work),
                                 name_of(step.order), step.threads, step.operations);
  if (step.disturbance != Disturbance::none) text += fmt::format(", {}", name_of(step.disturbance));
  if (step.fault != Fault::none) text += fmt::format(", fault {}", name_of(step.fault));
  if (step.visitors) text += ", visitors";
  if (step.restarts) text += ", restarts";
  return text;
}

std::string describe(const Episode& episode) {
  std::string text;
  for (const PoolPlan& pool : episode.pools) {
    text += fmt::format("  pool: {}, max_size {} MiB{}\n", name_of(pool.domain),
                        pool.max_size / kMiB, pool.tight ? ", tight" : "");
  }
  for (const IndexPlan& index : episode.indexes) {
    text +=
        fmt::format("  {} in pool {}: {} {}, {} keys {}{}, values {}\n", index.name, index.pool,
                    index.type->engine, index.type->kinds(), index.count, name_of(index.keys.shape),
                    index.keys.shape == Shape::prefix || index.keys.shape == Shape::groups
                        ? fmt::format(" {}", index.keys.prefix)
                        : "",
                    name_of(index.values.sizes));
  }
  for (const Round& round : episode.rounds) {
    text += describe(round);
    for (const Step& step : round.steps) text += fmt::format("    {}\n", describe(step));
  }
  return text;
}

}  // namespace perdix::test::storm
